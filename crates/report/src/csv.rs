//! Studies as CSV in long format: one line per number.

use crate::{
    ReportError, Sample, Study, advice, marks::Marks, regions::region_lines, rows::rows, sysmon,
};

const HEADER: [&str; 11] = [
    "policy", "program", "role", "phase", "metric", "unit", "mean", "ci95", "n", "status",
    "verdict",
];

/// One line per policy, program, phase (`alone`, `together`) and metric, below
/// a header line; values in base units (`ps`, `B/s`, shares and slowdowns as
/// ratios). Regions that stand for a
/// program follow it, as `region_1_cpi`; advice and what SysMon sees come last, under the policies `advice` and `sysmon`. An
/// unknown mean or interval is an empty field. `status` is
/// `complete` or `PARTIAL`. `verdict` stands beside the slowdown of a program of which the
/// [findings](crate::findings) say something: `shown`, or why no change is claimed, behind
/// `difference from POLICY: ` where that is the question. A point of a sweep that was not run has one line, with
/// nothing but its axes, no values, and `PARTIAL`.
///
/// # Errors
/// [`ReportError::Csv`] if the writer refuses.
pub fn to_csv(study: &Study) -> Result<String, ReportError> {
    csv_of(std::slice::from_ref(study))
}

/// The same of several points of a sweep, with the axes before the other columns.
pub(crate) fn csv_of(studies: &[Study]) -> Result<String, ReportError> {
    let mut out = ::csv::Writer::from_writer(Vec::new());
    let axes = studies
        .first()
        .into_iter()
        .flat_map(|study| study.axes.keys());
    out.write_record(axes.map(String::as_str).chain(HEADER))?;
    for (study, marks) in studies.iter().zip(Marks::of_all(studies)) {
        write(study, &marks, &mut out)?;
    }
    let bytes = out
        .into_inner()
        .map_err(|e| ::csv::Error::from(e.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn write(
    study: &Study,
    marks: &Marks,
    out: &mut ::csv::Writer<Vec<u8>>,
) -> Result<(), ReportError> {
    let status = if study.complete {
        "complete"
    } else {
        "PARTIAL"
    };
    let axes = || study.axes.values().map(String::as_str);
    if study.policies.is_empty() && !study.complete {
        let nothing = ["", "", "", "", "", "", "", "", "0", status, "not run"];
        out.write_record(axes().chain(nothing))?;
    }
    for policy in &study.policies {
        for program in &policy.programs {
            let verdict = marks.verdict(&policy.name, &program.name);
            let mut line = |phase: &str, metric: &str, unit: &str, s: &Sample| {
                let verdict = if metric == SLOWDOWN { verdict } else { "" };
                let mean = plain(Some(s.mean).filter(|_| s.is_known()));
                let fields = [
                    &policy.name,
                    &program.name,
                    program.role.as_str(),
                    phase,
                    metric,
                    unit,
                    &mean,
                    &plain(s.ci95),
                    &s.n().to_string(),
                    status,
                    verdict,
                ];
                out.write_record(axes().chain(fields))
            };
            if let Some(slowdown) = &program.slowdown {
                line("together", SLOWDOWN, "1", slowdown)?;
            }
            let phases = [
                ("alone", Some(&program.alone)),
                ("together", program.together.as_ref()),
            ];
            for (phase, metrics) in phases {
                for row in metrics.map(rows).unwrap_or_default() {
                    line(phase, &row.key, row.kind.base_unit(), row.sample)?;
                }
            }
            for (metric, unit, phase, sample) in region_lines(program) {
                line(phase, &metric, unit, &sample)?;
            }
        }
    }
    for (program, role, metric, unit, sample) in study.advice.iter().flat_map(advice::lines) {
        let mean = plain(Some(sample.mean).filter(|_| sample.is_known()));
        let n = sample.n().to_string();
        let role = role.as_str();
        let fields = [
            "advice", &program, role, "alone", &metric, unit, &mean, "", &n, status, "",
        ];
        out.write_record(axes().chain(fields))?;
    }
    for (program, metric, unit, value) in sysmon::lines(&study.sysmon) {
        let value = plain(Some(value));
        let fields = [
            "sysmon", program, "", "alone", metric, unit, &value, "", "1", status, "",
        ];
        out.write_record(axes().chain(fields))?;
    }
    Ok(())
}

/// Metric of the lines that have a verdict.
const SLOWDOWN: &str = "slowdown";

/// All digits, so that reading it back gives the same number.
pub(crate) fn plain(value: Option<f64>) -> String {
    value
        .filter(|v| v.is_finite())
        .map(|v| v.to_string())
        .unwrap_or_default()
}

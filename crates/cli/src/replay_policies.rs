//! `piebald replay --policy help`: the policies, their options, and where their counts are another's.

use std::fmt::Write as _;

use piebald_os_model::replace::registry::{BESIDE_LIBCACHESIM, OPTIONS, POLICIES};
use serde_json::{Value, json};

use crate::{failure::Failure, json::Json};

/// Lists them all.
pub(crate) fn list(json: &Json) -> Result<(), Failure> {
    json.show(&as_text(), &as_json())
}

fn as_text() -> String {
    let mut out = String::new();
    for row in POLICIES {
        let _ = writeln!(out, "{}: {} ({})", row.name, row.about, row.source);
        for option in OPTIONS.iter().filter(|option| option.policy == row.name) {
            let _ = writeln!(
                out,
                "    {}: {} [default: {}]",
                option.name, option.values, option.default
            );
        }
        if row.name == "dulo-linux" {
            out += "    options: those of dulo but base\n";
        }
        for (compared, other, misses) in beside(row.name) {
            let _ = writeln!(
                out,
                "    {compared} beside libCacheSim's {other}: misses {misses}"
            );
        }
    }
    out + "\nOptions stand behind a colon, several with semicolons between them: --policy dulo:bank=4MiB;base=arc,lru. \
           `all` is every policy.\n"
}

fn as_json() -> Value {
    let policy = |name: &str| {
        let options = OPTIONS.iter().filter(|option| option.policy == name);
        let options = options.map(|o| {
            json!({ "names": o.name.split(", ").collect::<Vec<_>>(), "values": o.values, "default": o.default })
        });
        let beside = beside(name).map(|(compared, other, misses)| {
            json!({ "policy": compared, "libcachesim": other, "misses": misses })
        });
        (
            options.collect::<Vec<Value>>(),
            beside.collect::<Vec<Value>>(),
        )
    };
    let each = POLICIES.iter().map(|row| {
        let (options, beside) = policy(row.name);
        json!({
            "name": row.name, "about": row.about, "source": row.source, "options": options,
            "beside_libcachesim": beside,
        })
    });
    json!({ "schema": 1, "policies": each.collect::<Vec<Value>>() })
}

/// What is compared of a policy.
fn beside(name: &str) -> impl Iterator<Item = &'static (&'static str, &'static str, &'static str)> {
    BESIDE_LIBCACHESIM
        .iter()
        .filter(move |(compared, ..)| compared.split(':').next() == Some(name))
}

//! Records a command: `record FILE COMMAND...`. Options by environment:
//! `SKIP`, `LIMIT`, `REGION=A:B`.

use piebald_qemu::recorder::Recorder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let output = args.next().ok_or("usage: record FILE COMMAND...")?;
    let mut recorder = Recorder::new(output.as_ref());
    if let Ok(skip) = std::env::var("SKIP") {
        recorder.skip = skip.parse()?;
    }
    if let Ok(limit) = std::env::var("LIMIT") {
        recorder.limit = Some(limit.parse()?);
    }
    if let Ok(region) = std::env::var("REGION") {
        let (from, to) = region.split_once(':').ok_or("REGION=A:B")?;
        recorder.region = Some((from.parse()?, to.parse()?));
    }
    let summary = recorder.run(&args.collect::<Vec<_>>())?;
    eprintln!("{summary:#?}");
    eprintln!(
        "{:.1} M references/s, {:.3} bytes/reference",
        summary.references_per_second() / 1e6,
        summary.bytes_per_reference()
    );
    Ok(())
}

//! Prints the signatures of functions as a kernel's BTF has them: `signatures BTF FUNCTION...`; a line
//! for each, `FUNCTION<TAB>SIGNATURE`, and nothing for those that it does not have. For `known.sh`.

#[path = "../src/btf.rs"]
#[allow(dead_code, reason = "the module reads more than signatures")]
mod btf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let path = words.next().ok_or("usage: signatures BTF FUNCTION...")?;
    let data = std::fs::read(&path)?;
    let count = btf::count(&data).ok_or_else(|| format!("{path}: no BTF that can be read"))?;
    let mut index = vec![0; count];
    let btf = btf::Btf::open(&data, &mut index).ok_or_else(|| format!("{path}: no BTF"))?;
    for name in words {
        let mut text = String::new();
        if btf.signature(name.as_bytes(), &mut text) {
            println!("{name}\t{text}");
        }
    }
    Ok(())
}

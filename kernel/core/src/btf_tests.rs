//! A small kernel's type information, written here type by type, and what is read of it.

use crate::btf::{Btf, Field, count};

/// Types and strings as they are put together.
struct Made {
    types: Vec<u32>,
    strings: Vec<u8>,
    n: u32,
}

impl Made {
    fn new() -> Self {
        Self {
            types: Vec::new(),
            strings: vec![0],
            n: 0,
        }
    }

    fn text(&mut self, text: &str) -> u32 {
        let at = self.strings.len();
        self.strings.extend(text.bytes());
        self.strings.push(0);
        match text {
            "" => 0,
            _ => u32::try_from(at).unwrap(),
        }
    }

    /// A type; what follows its first three words is `rest`. Its number.
    fn add(&mut self, kind: u32, name: &str, len: usize, value: u32, rest: &[u32]) -> u32 {
        let name = self.text(name);
        let info = kind << 24 | u32::try_from(len).unwrap();
        self.types.extend([name, info, value]);
        self.types.extend(rest);
        self.n += 1;
        self.n
    }

    fn members(&mut self, kind: u32, name: &str, bytes: u32, of: &[(&str, u32, u32)]) -> u32 {
        let mut rest = Vec::new();
        for &(name, id, bit) in of {
            rest.extend([self.text(name), id, bit]);
        }
        self.add(kind, name, of.len(), bytes, &rest)
    }

    fn function(&mut self, name: &str, returns: u32, arguments: &[u32]) -> u32 {
        let rest: Vec<u32> = arguments.iter().flat_map(|&id| [0, id]).collect();
        let prototype = self.add(13, "", arguments.len(), returns, &rest);
        match name {
            "" => prototype,
            name => self.add(12, name, 0, prototype, &[]),
        }
    }

    fn data(&self) -> Vec<u8> {
        let types = u32::try_from(self.types.len() * 4).unwrap();
        let strings = u32::try_from(self.strings.len()).unwrap();
        let mut data = vec![0x9f, 0xeb, 1, 0];
        for word in [24, 0, types, types, strings].iter().chain(&self.types) {
            data.extend(word.to_le_bytes());
        }
        data.extend(&self.strings);
        data
    }
}

/// Functions with each sort of argument, a structure in a structure, an enumeration.
fn small() -> Vec<u8> {
    let mut m = Made::new();
    let int = m.add(1, "int", 0, 4, &[0]);
    let long = m.add(1, "long unsigned int", 0, 8, &[0]);
    let flags = m.add(8, "gfp_t", 0, int, &[]);
    let array = m.add(3, "", 0, 0, &[long, int, 3]);
    let union = m.members(5, "", 24, &[("lru", array, 0), ("pad", long, 0)]);
    let folio = m.members(
        4,
        "folio",
        40,
        &[("flags", long, 0), ("", union, 64), ("n", int, 256)],
    );
    let pointer = m.add(2, "", 0, folio, &[]);
    let constant = m.add(10, "", 0, folio, &[]);
    let to_constant = m.add(2, "", 0, constant, &[]);
    let to_nothing = m.add(2, "", 0, 0, &[]);
    let callback = m.function("", int, &[to_nothing, long]);
    let to_callback = m.add(2, "", 0, callback, &[]);
    m.members(6, "mode", 4, &[]);
    let (sync, asynchronous) = (m.text("MODE_SYNC"), m.text("MODE_ASYNC"));
    let mode = m.add(6, "mode_kind", 2, 4, &[sync, 2, asynchronous, u32::MAX]);
    m.function("folio_alloc", pointer, &[flags, int]);
    m.function("folio_look", int, &[to_constant, mode, to_callback]);
    m.function("drain", 0, &[]);
    m.data()
}

fn with<T>(data: &[u8], ask: impl FnOnce(&Btf<'_>) -> T) -> Option<T> {
    let mut index = vec![0; count(data)?];
    Btf::open(data, &mut index).map(|btf| ask(&btf))
}

fn signature(data: &[u8], name: &str) -> Option<String> {
    with(data, |btf| {
        let mut text = String::new();
        btf.signature(name.as_bytes(), &mut text).then_some(text)
    })?
}

#[test]
fn a_signature_is_what_c_has_without_names() {
    let data = small();
    let expected = [
        ("folio_alloc", "struct folio * (gfp_t, int)"),
        (
            "folio_look",
            "int (const struct folio *, enum mode_kind, int (*)(void *, long unsigned int))",
        ),
        ("drain", "void (void)"),
    ];
    for (name, text) in expected {
        assert_eq!(signature(&data, name).as_deref(), Some(text));
    }
}

#[test]
fn a_name_is_compared_to_its_end() {
    for name in ["folio_allo", "folio_alloc_", "folio", ""] {
        assert_eq!(signature(&small(), name), None, "{name}");
    }
}

#[test]
fn fields_of_anonymous_parts_are_those_of_the_whole() {
    let data = small();
    let field = |name: &str| with(&data, |b| b.field(b"folio", name.as_bytes())).unwrap();
    assert_eq!(field("flags"), Some(Field { bit: 0, bytes: 8 }));
    assert_eq!(field("lru"), Some(Field { bit: 64, bytes: 24 }));
    assert_eq!(field("pad"), Some(Field { bit: 64, bytes: 8 }));
    assert_eq!(field("n"), Some(Field { bit: 256, bytes: 4 }));
    assert_eq!(field("none"), None);
    assert_eq!(with(&data, |b| b.field(b"none", b"n")).unwrap(), None);
}

#[test]
fn enumerators_have_their_values() {
    let data = small();
    let value = |name: &str| with(&data, |b| b.value(name.as_bytes())).unwrap();
    assert_eq!(value("MODE_SYNC"), Some(2));
    assert_eq!(value("MODE_ASYNC"), Some(-1));
    assert_eq!(value("MODE"), None);
}

#[test]
fn data_that_ends_early_is_refused() {
    let data = small();
    for len in 0..data.len() {
        let cut = data.get(..len).unwrap();
        let read = with(cut, |b| b.value(b"MODE_SYNC"));
        assert_eq!(read, None, "{len} of {} bytes", data.len());
    }
}

/// Whatever the data says, nothing is read beyond it and every question ends.
#[test]
fn fuzz_btf() {
    let cases = std::env::var("PIEBALD_FUZZ_CASES").map_or(20_000, |n| n.parse().unwrap());
    let good = small();
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let mut opened = 0u32;
    for _ in 0..cases {
        let mut data = good.clone();
        for _ in 0..=random() % 4 {
            let at = usize::try_from(random()).unwrap() % data.len();
            data[at] = random().to_le_bytes()[0];
        }
        let asked = with(&data, |b| {
            let mut text = String::new();
            for name in ["folio_alloc", "folio_look", "drain"] {
                b.signature(name.as_bytes(), &mut text);
            }
            b.field(b"folio", b"n");
            b.value(b"MODE_ASYNC");
        });
        opened += u32::from(asked.is_some());
    }
    assert!(opened > 0, "all were refused: nothing was asked");
}

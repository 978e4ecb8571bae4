//! What a trace is packed in.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Take};

use flate2::Crc;
use flate2::bufread::{DeflateDecoder, GzDecoder};
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};
use zip::{CompressionMethod, ZipArchive};

use super::bunzip2::Bunzip2;
use super::error::ForeignError;

/// Most chunks that a zip may have: at drmemtrace's 10 million instructions per chunk this is
/// 10^13 instructions, and the list of chunks stays below 32 MiB.
const MAX_CHUNKS: usize = 1_000_000;
/// Files of a zip that an error names.
const NAMED: usize = 4;
/// Compressed bytes read at a time.
const READ_AHEAD: usize = 1 << 15;

/// Memory that an xz file may ask for, in bytes: `xz -9` asks for 65 MiB. The limit of zstd is the
/// library's own, 128 MiB.
const XZ_MEMORY: u64 = 256 << 20;

/// With its only method.
const GZIP: &[u8] = &[0x1f, 0x8b, 8];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const BZIP2: &[u8] = b"BZh";
const ZIP: &[u8] = b"PK\x03\x04";
/// Magic bytes of packings that are named in an error instead of being taken for a trace.
const REFUSED: [(&[u8], &str); 6] = [
    (&[0x1f, 0x9d], "a file of compress (.Z)"),
    (b"Rar!\x1a\x07", "a RAR file"),
    (b"LZIP", "an lzip file"),
    (&[0x04, 0x22, 0x4d, 0x18], "an lz4 file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z file"),
    (b"PK\x05\x06", "an empty zip"),
];

/// Bytes of the header of a `.lzma` file, which has no magic word: a byte of properties, the size of the
/// dictionary and that of what is packed.
const LZMA_HEADER: usize = 13;

/// Whether a `.lzma` file begins so, as programs write them: the usual properties, a dictionary of 2^n or
/// 3 x 2^n bytes, and a size that is unknown or below 256 GiB, as the file format's authors test it.
fn is_lzma(head: &[u8]) -> bool {
    const USUAL: u8 = 0x5d;
    let Some(header) = head.first_chunk::<LZMA_HEADER>() else {
        return false;
    };
    let dictionary = header[1..5].iter().rev();
    let dictionary = dictionary.fold(0, |all, b| all << 8 | u32::from(*b));
    let size = header[5..].iter().rev();
    let size = size.fold(0, |all, b| all << 8 | u64::from(*b));
    let usual = dictionary >> dictionary.trailing_zeros().min(31);
    header[0] == USUAL
        && dictionary >= 1 << 16
        && (usual == 1 || usual == 3)
        && (size == u64::MAX || size < 256 << 30)
}

/// Bytes of a tar header.
pub(crate) const TAR_BLOCK: usize = 512;

/// The name of the first file in a tar archive, or `FILE` for one of a folder that comes first; `None`
/// if the bytes do not begin an archive. The header's checksum decides, which is older than its magic
/// word.
pub(crate) fn tar_member(bytes: &[u8]) -> Option<String> {
    const CHECKSUM: std::ops::Range<usize> = 148..156;
    const TYPE: usize = 156;
    let header: &[u8; TAR_BLOCK] = bytes.first_chunk()?;
    let digits = header[CHECKSUM].trim_ascii_start();
    let digits = digits.split(|b| matches!(b, 0 | b' ')).next()?;
    let written = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()?;
    let counted = header.iter().enumerate().map(|(at, b)| match at {
        at if CHECKSUM.contains(&at) => u32::from(b' '),
        _ => u32::from(*b),
    });
    let name = header[..100].split(|b| *b == 0).next()?;
    let is_tar = counted.sum::<u32>() == written && !name.is_empty();
    // Archives of Python and of pax begin with a header of attributes, which no one can take out.
    let is_header = matches!(header[TYPE], b'x' | b'g' | b'L' | b'K');
    is_tar.then(|| match name.last() {
        Some(b'/') => "FILE".to_owned(),
        _ if is_header => "FILE".to_owned(),
        // A name that a terminal cannot show, or that is cut, cannot be written down.
        _ => match std::str::from_utf8(name) {
            Ok(name) if !name.chars().any(char::is_control) => name.to_owned(),
            _ => "FILE".to_owned(),
        },
    })
}

/// What a file is packed by, told by its first bytes; a zip is known otherwise.
pub(crate) fn packing(head: &[u8]) -> Option<&'static str> {
    let of = [(GZIP, "gzip"), (XZ, "xz"), (ZSTD, "zstd")];
    let found = of.iter().find(|(magic, _)| head.starts_with(magic));
    // A frame of zstd that is skipped, which may stand before the others.
    let found = found.or(match head {
        [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(&of[2]),
        _ => None,
    });
    let bzip2 = is_bzip2(head).then_some("bzip2");
    found.map(|(_, name)| *name).or(bzip2)
}

/// The unpacked bytes of a file.
pub(crate) struct Unpacked {
    pub reader: Box<dyn Read + Send>,
    /// What the file is packed by.
    pub packing: Option<&'static str>,
}

/// Wraps a file so that reading gives its unpacked bytes.
pub(crate) fn unpack<R: Read + Seek + Send + 'static>(
    name: &str,
    mut file: R,
) -> Result<Unpacked, ForeignError> {
    let failed = |source| ForeignError::Read {
        name: name.to_owned(),
        offset: 0,
        source,
    };
    let mut magic = Vec::new();
    file.by_ref()
        .take(LZMA_HEADER as u64)
        .read_to_end(&mut magic)
        .map_err(failed)?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let marked = REFUSED.iter().find(|(m, _)| magic.starts_with(m));
    let refused = marked.map(|(_, what)| *what);
    if let Some(what) = refused.or_else(|| is_lzma(&magic).then_some("an LZMA file (.lzma)")) {
        return Err(ForeignError::Container {
            name: name.to_owned(),
            found: format!("this is {what}"),
        });
    }
    if magic.starts_with(ZIP) {
        return Ok(Unpacked {
            reader: Box::new(Chunks::open(name, file)?),
            packing: Some("zip"),
        });
    }
    let packing = packing(&magic);
    let file = BufReader::with_capacity(READ_AHEAD, file);
    let reader: Box<dyn Read + Send> = match packing {
        Some("gzip") => Box::new(Members::Reading(Box::new(GzDecoder::new(file)))),
        Some("xz") => {
            let stream = Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED);
            let stream = stream.map_err(|e| failed(e.into()))?;
            Box::new(XzDecoder::new_stream(file, stream))
        }
        Some("zstd") => Box::new(zstd::Decoder::with_buffer(file).map_err(failed)?),
        Some(_) => Box::new(Bunzip2::new(file)),
        None => Box::new(file),
    };
    Ok(Unpacked { reader, packing })
}

/// The members of a gzip file, one behind the other. Zeros behind the last are padding, as gzip takes
/// them: tapes and block devices are filled up so.
enum Members<R> {
    Reading(Box<GzDecoder<R>>),
    /// Between two members, and at the end.
    Ended(Option<R>),
}

impl<R: BufRead> Members<R> {
    /// The next member; `false` if nothing but zeros is left.
    fn advance(&mut self) -> io::Result<bool> {
        let Self::Ended(file) = self else {
            return Ok(true);
        };
        let Some(mut rest) = file.take() else {
            return Ok(false);
        };
        loop {
            let bytes = rest.fill_buf()?;
            let zeros = bytes.iter().take_while(|b| **b == 0).count();
            match (bytes.is_empty(), zeros) {
                (true, _) => return Ok(false),
                (false, 0) if bytes[0] != GZIP[0] => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "behind the end of the gzip file stand other bytes, which are neither zeros nor \
                         one more packed part; take them away (gzip -dc FILE gives what is whole)",
                    ));
                }
                (false, 0) => break,
                (false, _) => rest.consume(zeros),
            }
        }
        *self = Self::Reading(Box::new(GzDecoder::new(rest)));
        Ok(true)
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.advance()? {
            let Self::Reading(member) = self else { break };
            let read = member.read(out)?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            let Self::Reading(member) = std::mem::replace(self, Self::Ended(None)) else {
                break;
            };
            *self = Self::Ended(Some(member.into_inner()));
        }
        Ok(0)
    }
}

/// `BZh`, a block size, and a block or an end: text may begin with the first three letters.
fn is_bzip2(magic: &[u8]) -> bool {
    let rest = magic.strip_prefix(BZIP2);
    matches!(
        rest,
        Some([b'1'..=b'9', 0x31, 0x41, ..] | [b'1'..=b'9', 0x17, 0x72, ..])
    )
}

#[derive(Clone, Copy, Debug)]
struct Chunk {
    start: u64,
    packed: u64,
    unpacked: u64,
    crc: u32,
    deflated: bool,
}

/// What an entry of a zip is for: drmemtrace names its chunks `chunk.0000`, `chunk.0001` and so on.
fn is_chunk(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    let number = file.strip_prefix("chunk.");
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Does macOS add a file of this name to a zip? It holds nothing of the user's.
fn is_attendant(name: &str) -> bool {
    name.starts_with("__MACOSX/") || name == ".DS_Store" || name.ends_with("/.DS_Store")
}

/// The entries of a zip, in order of its directory, as one stream.
struct Chunks<R> {
    /// Present while no chunk is open.
    file: Option<R>,
    chunks: std::vec::IntoIter<Chunk>,
    open: Option<(Body<R>, Chunk, Crc)>,
}

enum Body<R> {
    Deflated(DeflateDecoder<BufReader<Take<R>>>),
    Stored(BufReader<Take<R>>),
}

impl<R: Read + Seek> Chunks<R> {
    fn open(name: &str, file: R) -> Result<Self, ForeignError> {
        let refuse = |found: String| ForeignError::Container {
            name: name.to_owned(),
            found,
        };
        let damaged = |e: zip::result::ZipError| refuse(format!("this zip is damaged: {e}"));
        let mut archive = ZipArchive::new(file).map_err(damaged)?;
        if archive.len() > MAX_CHUNKS {
            return Err(refuse(format!(
                "this zip has {} chunks, above the limit of {MAX_CHUNKS}",
                archive.len()
            )));
        }
        let mut chunks = Vec::with_capacity(archive.len());
        let (mut names, mut all_chunks): (Vec<String>, bool) = (Vec::new(), true);
        for index in 0..archive.len() {
            let entry = archive.by_index_raw(index).map_err(damaged)?;
            let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
            if entry.is_dir() || is_attendant(&name) {
                continue;
            }
            all_chunks &= is_chunk(&name);
            if names.len() < NAMED {
                names.push(name.escape_debug().to_string());
            }
            let deflated = match entry.compression() {
                CompressionMethod::Deflated => true,
                CompressionMethod::Stored => false,
                other => return Err(refuse(format!("this zip has a chunk packed by {other}"))),
            };
            if entry.encrypted() {
                return Err(refuse("this zip has an encrypted chunk".to_owned()));
            }
            let Some(start) = entry.data_start() else {
                return Err(refuse(
                    "this zip does not say where a chunk begins".to_owned(),
                ));
            };
            let chunk = Chunk {
                start,
                packed: entry.compressed_size(),
                unpacked: entry.size(),
                crc: entry.crc32(),
                deflated,
            };
            chunks.push(chunk);
        }
        // Files one behind the other are no trace: their last and first lines would become one.
        if chunks.len() > 1 && !all_chunks {
            let more = if chunks.len() > NAMED { ", ..." } else { "" };
            return Err(refuse(format!(
                "this zip holds {} files ({}{more}), not one trace; unpack it, and name those that \
                 are to be read",
                chunks.len(),
                names.join(", ")
            )));
        }
        Ok(Self {
            file: Some(archive.into_inner()),
            chunks: chunks.into_iter(),
            open: None,
        })
    }

    /// Opens the next chunk; `false` after the last.
    fn advance(&mut self) -> io::Result<bool> {
        let Some(mut file) = self.file.take() else {
            return Err(io::Error::other("an earlier chunk of the zip failed"));
        };
        let Some(chunk) = self.chunks.next() else {
            self.file = Some(file);
            return Ok(false);
        };
        file.seek(SeekFrom::Start(chunk.start))?;
        let packed = BufReader::with_capacity(READ_AHEAD, file.take(chunk.packed));
        let body = if chunk.deflated {
            Body::Deflated(DeflateDecoder::new(packed))
        } else {
            Body::Stored(packed)
        };
        self.open = Some((body, chunk, Crc::new()));
        Ok(true)
    }

    /// Checks a chunk that was read to its end, and takes the file back.
    fn close(&mut self) -> io::Result<()> {
        let Some((body, chunk, crc)) = self.open.take() else {
            return Ok(());
        };
        let mut packed = match body {
            Body::Deflated(decoder) => decoder.into_inner(),
            Body::Stored(packed) => packed,
        };
        let rest = !packed.fill_buf()?.is_empty();
        if rest || u64::from(crc.amount()) != chunk.unpacked & 0xffff_ffff {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "a chunk of the zip does not unpack to its {} bytes",
                    chunk.unpacked
                ),
            ));
        }
        if crc.sum() != chunk.crc {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "a chunk of the zip has checksum {:#010x} instead of {:#010x}",
                    crc.sum(),
                    chunk.crc
                ),
            ));
        }
        self.file = Some(packed.into_inner().into_inner());
        Ok(())
    }
}

impl<R: Read + Seek> Read for Chunks<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some((body, _, crc)) = &mut self.open {
                let n = match body {
                    Body::Deflated(decoder) => decoder.read(out)?,
                    Body::Stored(packed) => packed.read(out)?,
                };
                if n > 0 {
                    crc.update(&out[..n]);
                    return Ok(n);
                }
                self.close()?;
            }
            if !self.advance()? {
                return Ok(0);
            }
        }
    }
}

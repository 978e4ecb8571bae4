//! Requests of `io_submit`, which strace prints as a list of structures:
//!
//! ```text
//! io_submit(0x7f52, 1, [{aio_data=0x1, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=3</a>, aio_buf=0x7f00,
//!     aio_nbytes=4096, aio_offset=16384}]) = 1
//! ```
//!
//! The result says how many of them were taken. Of long lists strace prints the beginning.

use super::super::super::request::Op;
use super::args::Value;
use super::calls::{Context, Done};
use super::data::{Move, Start, append_by};
use super::text::Parts;

const NOT_PRINTED: &str = "io_submit, requests not printed";

/// What an operation does, and whether its bytes lie in several pieces.
fn operation(code: &[u8]) -> Option<(Op, bool)> {
    let is = |name: &str, number: i64| {
        let word = code.strip_prefix(name.as_bytes());
        word.is_some_and(|rest| rest.is_empty())
            || Value::parse(code).map(|v| v.number) == Some(number)
    };
    match () {
        () if is("IOCB_CMD_PREAD", 0) => Some((Op::Read, false)),
        () if is("IOCB_CMD_PWRITE", 1) => Some((Op::Write, false)),
        () if is("IOCB_CMD_PREADV", 7) => Some((Op::Read, true)),
        () if is("IOCB_CMD_PWRITEV", 8) => Some((Op::Write, true)),
        () => None,
    }
}

/// Bytes of all pieces; `None` if strace did not print all of them.
fn bytes_of(pieces: &[u8]) -> Option<u64> {
    let lengths = Parts::of(pieces)?.map(|piece| {
        let length = Parts::of(piece)?.field("iov_len")?;
        u64::try_from(Value::parse(length)?.number).ok()
    });
    lengths.sum()
}

impl<'a> Context<'a, '_> {
    pub fn submit(&mut self) -> Done {
        let mut left = self.returned();
        for job in Parts::of(self.call.arg(2)).into_iter().flatten() {
            if left == 0 || !job.starts_with(b"{") {
                break;
            }
            left -= 1;
            self.job(job)?;
        }
        if left > 0 {
            self.sink.state.left_out.count(NOT_PRINTED, left);
        }
        Ok(())
    }

    /// As older versions of strace print them: `{data=0, pread, fildes=3, buf=0x7f00, nbytes=4096,
    /// offset=0}`, and still older ones `{pread, filedes:3, buf:0x7f00, nbytes:4096, offset:0}`.
    fn older_job(&mut self, job: &'a [u8]) -> Done {
        let parts = || Parts::of(job).into_iter().flatten();
        let field = |names: &[&str]| {
            parts().find_map(|part| {
                let at = part.iter().position(|b| matches!(b, b'=' | b':'))?;
                let is = names.iter().any(|name| part[..at] == *name.as_bytes());
                is.then_some(&part[at + 1..])
            })
        };
        let number = |name| u64::try_from(Value::parse(field(&[name])?)?.number).ok();
        let op = parts().find_map(|part| match part {
            b"pread" => Some(Some((Op::Read, false))),
            b"pwrite" => Some(Some((Op::Write, false))),
            b"preadv" => Some(Some((Op::Read, true))),
            b"pwritev" => Some(Some((Op::Write, true))),
            b"fsync" | b"fdsync" | b"poll" | b"noop" => Some(None),
            _ => None,
        });
        let (op, pieces) = match op {
            Some(Some(found)) => found,
            Some(None) => return Ok(()),
            None => return self.left_out(NOT_PRINTED),
        };
        // With several pieces `nbytes` is their number.
        let length = if pieces {
            parts().find_map(|part| bytes_of(&part[memchr::memchr(b'[', part)?..]))
        } else {
            number("nbytes")
        };
        let fd = field(&["fildes", "filedes"]);
        let (Some(fd), Some(offset), Some(length)) = (fd, number("offset"), length) else {
            return self.left_out(NOT_PRINTED);
        };
        self.moves(fd, Move::new(op, Start::At(offset), length))
    }

    fn job(&mut self, job: &'a [u8]) -> Done {
        let field = |name| Parts::of(job).and_then(|fields| fields.field(name));
        let number = |name| u64::try_from(Value::parse(field(name)?)?.number).ok();
        let Some(code) = field("aio_lio_opcode") else {
            return self.older_job(job);
        };
        // Flushes, polls.
        let Some((op, pieces)) = operation(code) else {
            return Ok(());
        };
        let length = match pieces {
            true => field("aio_buf").and_then(bytes_of),
            false => number("aio_nbytes"),
        };
        let (Some(fd), Some(offset), Some(length)) =
            (field("aio_fildes"), number("aio_offset"), length)
        else {
            return self.left_out(NOT_PRINTED);
        };
        let append = field("aio_rw_flags").and_then(append_by);
        let moves = Move::new(op, Start::At(offset), length);
        self.moves(fd, Move { append, ..moves })
    }
}

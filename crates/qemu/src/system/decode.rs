//! What an instruction is, as far as the machine model must know beyond its accesses.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

/// Something that QEMU's reports do not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// Nothing.
    Plain,
    /// Its accesses are non-temporal; the emulator carries them out like any others.
    NonTemporal,
    /// It reads and writes memory in one step that no other processor comes between.
    Locked,
    /// The processor waits for an interrupt, or gives its time to others.
    Waits,
}

/// Classifies an instruction of 64-bit mode.
pub fn nature(instruction: &[u8]) -> Nature {
    let mut decoder = Decoder::new(64, instruction, DecoderOptions::NONE);
    let instruction = decoder.decode();
    match instruction.mnemonic() {
        Mnemonic::Hlt | Mnemonic::Pause | Mnemonic::Mwait => Nature::Waits,
        Mnemonic::Movnti
        | Mnemonic::Movntq
        | Mnemonic::Movntdq
        | Mnemonic::Movntps
        | Mnemonic::Movntpd
        | Mnemonic::Movntss
        | Mnemonic::Movntsd
        | Mnemonic::Vmovntdq
        | Mnemonic::Vmovntps
        | Mnemonic::Vmovntpd
        | Mnemonic::Maskmovq
        | Mnemonic::Maskmovdqu
        | Mnemonic::Vmaskmovdqu
        | Mnemonic::Movntdqa
        | Mnemonic::Vmovntdqa => Nature::NonTemporal,
        _ if is_locked(&instruction) => Nature::Locked,
        _ => Nature::Plain,
    }
}

/// Exchanges with memory need no prefix for it.
fn is_locked(instruction: &Instruction) -> bool {
    let exchanges = || {
        let kinds = [instruction.op0_kind(), instruction.op1_kind()];
        instruction.mnemonic() == Mnemonic::Xchg && kinds.contains(&OpKind::Memory)
    };
    instruction.has_lock_prefix() || exchanges()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_temporal_instructions_are_known() {
        let movnti = [0x48, 0x0f, 0xc3, 0x07]; // movnti %rax,(%rdi)
        let movntdq = [0x66, 0x0f, 0xe7, 0x07]; // movntdq %xmm0,(%rdi)
        let vmovntdq = [0xc5, 0xfd, 0xe7, 0x07]; // vmovntdq %ymm0,(%rdi)
        let movntdqa = [0x66, 0x0f, 0x38, 0x2a, 0x07]; // movntdqa (%rdi),%xmm0
        for bytes in [&movnti[..], &movntdq, &vmovntdq, &movntdqa] {
            assert_eq!(nature(bytes), Nature::NonTemporal, "{bytes:x?}");
        }
    }

    #[test]
    fn waiting_instructions_are_known() {
        assert_eq!(nature(&[0xf4]), Nature::Waits, "hlt");
        assert_eq!(nature(&[0xf3, 0x90]), Nature::Waits, "pause");
    }

    #[test]
    fn locked_instructions_are_known() {
        let add = [0xf0, 0x48, 0x01, 0x07]; // lock add %rax,(%rdi)
        let cmpxchg = [0xf0, 0x0f, 0xb1, 0x0f]; // lock cmpxchg %ecx,(%rdi)
        let exchange = [0x48, 0x87, 0x07]; // xchg %rax,(%rdi)
        for bytes in [&add[..], &cmpxchg, &exchange] {
            assert_eq!(nature(bytes), Nature::Locked, "{bytes:x?}");
        }
        let between = [0x48, 0x87, 0xc3]; // xchg %rax,%rbx
        let add = [0x48, 0x01, 0x07]; // add %rax,(%rdi)
        for bytes in [&between[..], &add] {
            assert_eq!(nature(bytes), Nature::Plain, "{bytes:x?}");
        }
    }

    #[test]
    fn all_others_are_plain() {
        let mov = [0x48, 0x89, 0x07]; // mov %rax,(%rdi)
        let movdqa = [0x66, 0x0f, 0x7f, 0x07]; // movdqa %xmm0,(%rdi)
        let movsq = [0xf3, 0x48, 0xa5]; // rep movsq
        for bytes in [&mov[..], &movdqa, &movsq, &[0x90], &[0x0f], &[]] {
            assert_eq!(nature(bytes), Nature::Plain, "{bytes:x?}");
        }
    }
}

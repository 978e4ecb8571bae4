//! Blocks by their bytes.

use super::*;

/// Decodes instructions at 0x1000.
fn block(code: &[&[u8]]) -> Decoded {
    let lengths: Vec<u8> = code.iter().map(|c| c.len() as u8).collect();
    BlockDecoder::default().decode(0x1000, &code.concat(), &lengths)
}

fn regs(list: &[u8]) -> Sources {
    Sources {
        regs: list.iter().fold(0, |bits, r| bits | 1 << r),
        loads: 0,
    }
}

fn loads(list: &[u8]) -> Sources {
    Sources {
        regs: 0,
        loads: list.iter().fold(0, |bits, k| bits | 1 << k),
    }
}

fn out(d: &Decoded, reg: u8) -> Option<Sources> {
    d.def.outs.iter().find(|o| o.reg == reg).map(|o| o.value)
}

const RAX: u8 = 0;
const RCX: u8 = 1;
const RDX: u8 = 2;
const RBX: u8 = 3;
const RSP: u8 = 4;
const RBP: u8 = 5;
const RSI: u8 = 6;
const RDI: u8 = 7;

#[test]
fn a_pointer_chase_depends_on_its_own_loads() {
    // mov rax,[rdi]; mov rax,[rax+8]; mov rcx,[rax+rsi*8]
    let d = block(&[
        &[0x48, 0x8b, 0x07],
        &[0x48, 0x8b, 0x40, 0x08],
        &[0x48, 0x8b, 0x0c, 0xf0],
    ]);
    let address: Vec<Sources> = d.def.accesses.iter().map(|a| a.address).collect();
    let third = Sources {
        regs: 1 << RSI,
        loads: 1 << 1,
    };
    assert_eq!(address, [regs(&[RDI]), loads(&[0]), third]);
    assert_eq!(
        (out(&d, RAX), out(&d, RCX)),
        (Some(loads(&[1])), Some(loads(&[2])))
    );
    assert_eq!(d.def.accesses[2].offset, 7);
    assert_eq!(d.def.outs.len(), 2);
}

#[test]
fn arithmetic_joins_and_zeroing_forgets() {
    // mov rax,rdi; add rax,rsi; xor ecx,ecx; mov edx,5; lea rbx,[rax+rcx*2]
    let d = block(&[
        &[0x48, 0x89, 0xf8],
        &[0x48, 0x01, 0xf0],
        &[0x31, 0xc9],
        &[0xba, 5, 0, 0, 0],
        &[0x48, 0x8d, 0x1c, 0x48],
    ]);
    assert!(d.def.accesses.is_empty() && d.hooks.is_empty());
    assert_eq!(out(&d, RAX), Some(regs(&[RDI, RSI])));
    assert_eq!(out(&d, RCX), Some(Sources::default()));
    assert_eq!(out(&d, RDX), Some(Sources::default()));
    assert_eq!(out(&d, RBX), Some(regs(&[RDI, RSI])));
}

#[test]
fn writing_part_of_a_register_keeps_the_rest() {
    // mov al,[rdi]; mov cx,si
    let d = block(&[&[0x8a, 0x07], &[0x66, 0x89, 0xf1]]);
    let al = Sources {
        regs: 1 << RAX,
        loads: 1,
    };
    assert_eq!(out(&d, RAX), Some(al));
    assert_eq!(out(&d, RCX), Some(regs(&[RCX, RSI])));
}

#[test]
fn the_stack_pointer_depends_on_itself_only() {
    // push rbp; mov rbp,rsp; call +0
    let d = block(&[&[0x55], &[0x48, 0x89, 0xe5], &[0xe8, 0, 0, 0, 0]]);
    let kinds: Vec<_> = d
        .def
        .accesses
        .iter()
        .map(|a| (a.insn, a.size, a.kind, a.address))
        .collect();
    let store = |insn| (insn, 8, AccessKind::Store, regs(&[RSP]));
    assert_eq!(kinds, [store(0), store(2)]);
    assert_eq!((out(&d, RSP), out(&d, RBP)), (None, Some(regs(&[RSP]))));
    // pop rbx; leave; ret
    let d = block(&[&[0x5b], &[0xc9], &[0xc3]]);
    let address: Vec<_> = d.def.accesses.iter().map(|a| a.address).collect();
    assert_eq!(address, [regs(&[RSP]), regs(&[RBP]), regs(&[RBP])]);
    assert_eq!(out(&d, RBX), Some(loads(&[0])));
    assert_eq!(
        (out(&d, RBP), out(&d, RSP)),
        (Some(loads(&[1])), Some(regs(&[RBP])))
    );
}

#[test]
fn a_conditional_move_depends_on_what_was_compared() {
    // cmp rdx,[rdi]; cmovg rax,rsi
    let d = block(&[&[0x48, 0x3b, 0x17], &[0x48, 0x0f, 0x4f, 0xc6]]);
    let expected = Sources {
        regs: 1 << RAX | 1 << RSI | 1 << RDX,
        loads: 1,
    };
    assert_eq!(out(&d, RAX), Some(expected));
}

#[test]
fn values_pass_through_vector_registers() {
    // movq xmm0,[rdi]; movq rax,xmm0; mov rcx,[rax]
    let d = block(&[
        &[0xf3, 0x0f, 0x7e, 0x07],
        &[0x66, 0x48, 0x0f, 0x7e, 0xc0],
        &[0x48, 0x8b, 0x08],
    ]);
    assert_eq!(d.def.accesses[1].address, loads(&[0]));
}

#[test]
fn string_instructions_step_their_pointers() {
    // rep movsb; cmpsb
    let d = block(&[&[0xf3, 0xa4], &[0xa6]]);
    let all: Vec<_> = d
        .def
        .accesses
        .iter()
        .map(|a| (a.size, a.kind, a.address))
        .collect();
    assert_eq!(
        all,
        [
            (1, AccessKind::Load, regs(&[RSI])),
            (1, AccessKind::Store, regs(&[RDI])),
            // QEMU loads the second operand first.
            (1, AccessKind::Load, regs(&[RDI])),
            (1, AccessKind::Load, regs(&[RSI])),
        ]
    );
    assert!(d.def.outs.is_empty());
    assert_eq!(d.hooks[0].watch, Watch::LoadStore(1));
    assert_eq!(d.hooks[1].watch, Watch::Alternate(3));
}

#[test]
fn sizes_say_how_an_access_is_watched() {
    // mov rax,[rdi]; vmovdqu ymm0,[rdi]; add [rdi],rax; xsave [rdi]
    let d = block(&[
        &[0x48, 0x8b, 0x07],
        &[0xc5, 0xfe, 0x6f, 0x07],
        &[0x48, 0x01, 0x07],
        &[0x0f, 0xae, 0x27],
    ]);
    let watches: Vec<_> = d.hooks.iter().map(|h| h.watch).collect();
    assert_eq!(
        watches,
        [Watch::Plain, Watch::Join(32), Watch::Update, Watch::Pieces]
    );
    let sizes: Vec<u8> = d.def.accesses.iter().map(|a| a.size).collect();
    assert_eq!(sizes, [8, 32, 8, 8]);
}

#[test]
fn hints_and_address_arithmetic_access_nothing() {
    // prefetcht0 [rdi]; lea rax,[rdi]; nopw [rax+rax]; endbr64
    let d = block(&[
        &[0x0f, 0x18, 0x0f],
        &[0x48, 0x8d, 0x07],
        &[0x66, 0x0f, 0x1f, 0x04, 0x00],
        &[0xf3, 0x0f, 0x1e, 0xfa],
    ]);
    assert!(d.def.accesses.is_empty());
}

#[test]
fn marks_are_recognised_by_their_pattern() {
    let d = block(&[&[0x0f, 0x1f, 0x80, 0x34, 0x12, 0x43, 0x4b], &[0x90]]);
    assert_eq!(d.marks, [(0, 0x1234)]);
    let other = block(&[&[0x0f, 0x1f, 0x80, 0, 0, 0, 0]]);
    assert!(other.marks.is_empty());
}

#[test]
fn any_bytes_decode_to_a_valid_block() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut decoder = BlockDecoder::default();
    for _ in 0..20_000 {
        let mut bytes = [0; 60];
        for b in &mut bytes {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *b = state as u8;
        }
        let d = decoder.decode(0x1000, &bytes, &[15, 15, 15, 15]);
        for a in &d.def.accesses {
            assert!((1..=64).contains(&a.size) && a.insn < 4, "{bytes:x?}");
        }
        for h in &d.hooks {
            assert!(usize::from(h.access) < d.def.accesses.len());
        }
    }
}

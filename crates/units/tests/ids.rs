//! Frames, pages, addresses, orders and references.

use piebald_units::{
    Color, CoreId, Lba, Order, PAGE_SIZE, PageSize, Pfn, PhysAddr, VirtAddr, Vpn, memory::PhysRef,
    op::MemRef, op::RefKind,
};
use proptest::prelude::*;

proptest! {
    #[test]
    fn an_address_lies_in_its_frame(addr in any::<u64>()) {
        let base = Pfn::of(PhysAddr(addr)).base().unwrap().0;
        prop_assert!(base.is_multiple_of(PAGE_SIZE));
        prop_assert!(addr - base < PAGE_SIZE);
    }

    #[test]
    fn an_address_is_its_page_and_its_offset(addr in any::<u64>()) {
        let addr = VirtAddr(addr);
        prop_assert_eq!(Vpn::of(addr).base().0 + addr.page_offset(), addr.0);
    }

    #[test]
    fn frames_beyond_64_bits_have_no_address(pfn in any::<u64>()) {
        let fits = u128::from(pfn) * 4096 <= u128::from(u64::MAX);
        prop_assert_eq!(Pfn(pfn).base().is_some(), fits);
    }

    #[test]
    fn frame_sums_do_not_wrap(pfn in any::<u64>(), n in any::<u64>()) {
        prop_assert_eq!(Pfn(pfn).checked_add(n), pfn.checked_add(n).map(Pfn));
    }

    #[test]
    fn a_reference_joins_frame_and_offset(frame in any::<u32>(), addr in any::<u64>()) {
        let reference = PhysRef { vaddr: VirtAddr(addr), frame, ..PhysRef::default() };
        prop_assert_eq!(reference.paddr().0, u64::from(frame) * PAGE_SIZE + addr % PAGE_SIZE);
    }

    #[test]
    fn orders_double(order in 0u8..=255) {
        let expected = (order < 64).then(|| 2u64.pow(u32::from(order)));
        prop_assert_eq!(Order(order).frames(), expected);
    }
}

#[test]
fn the_last_frame_has_an_address_and_the_next_has_none() {
    let last = Pfn::of(PhysAddr(u64::MAX));
    assert_eq!(last.base(), Some(PhysAddr(u64::MAX - (PAGE_SIZE - 1))));
    assert_eq!(Pfn(last.0 + 1).base(), None);
}

#[test]
fn ids_print_with_what_they_are() {
    assert_eq!(Pfn(0x1f).to_string(), "pfn 0x1f");
    assert_eq!(PhysAddr(4096).to_string(), "0x1000");
    assert_eq!(Color(7).to_string(), "color 7");
    assert_eq!(CoreId(3).to_string(), "cpu3");
    assert_eq!(Lba(63).to_string(), "lba 63");
    assert_eq!(Order::MAX.to_string(), "order 10");
}

#[test]
fn page_sizes_agree_with_their_orders() {
    for size in [PageSize::Base, PageSize::Huge] {
        assert_eq!(
            size.order().frames().unwrap() * PAGE_SIZE,
            1 << size.shift()
        );
    }
}

#[test]
fn references_are_as_small_as_their_documentation_says() {
    assert_eq!(size_of::<MemRef>(), 24);
    assert_eq!(size_of::<PhysRef>(), 24);
}

#[test]
fn stores_and_updates_write_and_nothing_else_does() {
    let writers = [RefKind::Store, RefKind::Update];
    for kind in [
        RefKind::Load,
        RefKind::Store,
        RefKind::Update,
        RefKind::Fetch,
        RefKind::LoadNt,
    ] {
        assert_eq!(kind.writes(), writers.contains(&kind), "{kind:?}");
    }
}

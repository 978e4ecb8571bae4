//! What the contract promises to every host.

use piebald_policy::contract::{
    AllocError, Asker, Broken, Cause, FrameRequest, FreeError, Grant, Mode, Purpose,
};
use piebald_units::{CoreId, Order, Pfn, TaskId, Vpn};

#[test]
fn a_fault_asks_for_one_frame_of_any_color_for_its_task() {
    let request = FrameRequest::fault(TaskId(7), CoreId(3), Vpn(0x1234));
    assert_eq!(request.order.frames(), Some(1));
    assert_eq!(request.asker, Asker::Task(TaskId(7)));
    assert_eq!(
        (request.purpose, request.cause),
        (Purpose::Anon, Cause::Fault)
    );
    assert_eq!((request.core, request.page), (CoreId(3), Some(Vpn(0x1234))));
    assert!(request.allowed.is_none() && request.wish.is_none());
    assert_eq!(
        request.mode,
        Mode::Hint,
        "a request without colors must not bind to any"
    );
}

#[test]
fn every_error_has_words_of_its_own() {
    let mut words = vec![
        AllocError::OutOfMemory.to_string(),
        AllocError::ColorsExhausted.to_string(),
        AllocError::OrderTooLarge.to_string(),
        AllocError::NoColors.to_string(),
        FreeError::DoubleFree.to_string(),
        FreeError::Foreign.to_string(),
        FreeError::OrderMismatch.to_string(),
    ];
    assert!(words.iter().all(|w| !w.is_empty()));
    let count = words.len();
    words.sort();
    words.dedup();
    assert_eq!(words.len(), count, "two errors read the same: {words:?}");
}

#[test]
fn a_broken_rule_names_the_rule_and_the_frame() {
    let broken = Broken {
        rule: "free list holds a granted block",
        frame: Pfn(0x42),
    };
    assert_eq!(
        broken.to_string(),
        "free list holds a granted block (pfn 0x42)"
    );
}

/// Hosts pass these through hot paths by value, in registers.
#[test]
fn verdicts_are_small() {
    assert_eq!(size_of::<AllocError>(), 1);
    assert_eq!(size_of::<FreeError>(), 1);
    assert!(size_of::<Result<Grant, AllocError>>() <= 16);
    assert!(size_of::<FrameRequest<'_>>() <= 64);
    assert_eq!(Order::MAX.frames(), Some(1024));
}

//! A policy whose type does not matter, for hosts that ask it seldom enough.

use piebald_policy::contract::replacement::{
    BrokenOrder, Effort, Gone, Insert, PageRef, Replacement, State, Touch,
};
use piebald_units::{DiskBlock, Picos};

use super::registry::{BuildError, Setup, Visitor, build_spec};
use super::spec::PolicySpec;

/// Any policy of the registry. A host over it is compiled once, not once for each.
pub struct AnyPolicy(Box<dyn Cloned>);

trait Cloned: Replacement + Send + Sync {
    fn cloned(&self) -> Box<dyn Cloned>;
}

impl<P: Replacement + Clone + Send + Sync + 'static> Cloned for P {
    fn cloned(&self) -> Box<dyn Cloned> {
        Box::new(self.clone())
    }
}

impl Clone for AnyPolicy {
    fn clone(&self) -> Self {
        Self((*self.0).cloned())
    }
}

struct Any;

impl Visitor for Any {
    type Out = AnyPolicy;

    fn visit<P: Replacement + Clone + Send + Sync + 'static>(self, policy: P) -> AnyPolicy {
        AnyPolicy(Box::new(policy))
    }
}

impl AnyPolicy {
    /// Builds what a specification asks for.
    ///
    /// # Errors
    /// As [`build_spec`].
    pub fn build(
        spec: &PolicySpec,
        setup: &Setup,
        run_costs: Option<&[u32]>,
    ) -> Result<Self, BuildError> {
        build_spec(spec, setup, run_costs, Any)
    }
}

impl Replacement for AnyPolicy {
    fn capacity(&self) -> u32 {
        self.0.capacity()
    }

    fn slots(&self) -> u32 {
        self.0.slots()
    }

    fn miss(&mut self, ghost: Option<PageRef>, insert: &Insert, now: Picos) {
        self.0.miss(ghost, insert, now);
    }

    fn insert(&mut self, page: PageRef, insert: &Insert, now: Picos) {
        self.0.insert(page, insert, now);
    }

    fn hit(&mut self, page: PageRef, touch: Touch, now: Picos) {
        self.0.hit(page, touch, now);
    }

    fn propose(&self, out: &mut [PageRef]) -> usize {
        self.0.propose(out)
    }

    fn detach(&mut self, page: PageRef) {
        self.0.detach(page);
    }

    fn reattach(&mut self, page: PageRef) {
        self.0.reattach(page);
    }

    fn forget(&mut self, page: PageRef, why: Gone) {
        self.0.forget(page, why);
    }

    fn evict(&mut self) -> Option<PageRef> {
        self.0.evict()
    }

    fn dropped(&mut self) -> Option<PageRef> {
        self.0.dropped()
    }

    fn place(&mut self, page: PageRef, at: Option<DiskBlock>) {
        self.0.place(page, at);
    }

    fn set_dirty(&mut self, page: PageRef, dirty: bool) {
        self.0.set_dirty(page, dirty);
    }

    fn state(&self, page: PageRef) -> State {
        self.0.state(page)
    }

    fn resident(&self) -> u32 {
        self.0.resident()
    }

    fn effort(&self) -> Effort {
        self.0.effort()
    }

    fn figures(&self, show: &mut dyn FnMut(&'static str, u64)) {
        self.0.figures(show);
    }

    fn validate(&self) -> Result<(), BrokenOrder> {
        self.0.validate()
    }
}

//! "Did you mean ...?" for errors of rooms that do not know how names are compared.

use piebald_hw::nearest::did_you_mean;
use piebald_os_model::replace::registry::{self, BuildError};
use piebald_sim::replay::InstanceError;
use piebald_workload::BuiltinError;

/// The names of all replacement policies.
pub(crate) fn policy_names() -> impl Iterator<Item = &'static str> {
    registry::POLICIES.iter().map(|row| row.name)
}

/// For a policy, an option of one, or the value of an option.
pub(crate) fn policy(error: &BuildError) -> String {
    match error {
        BuildError::Unknown { name } => did_you_mean(name, policy_names()),
        BuildError::Option(e) => did_you_mean(&e.value, e.allowed.split(", ")),
        _ => String::new(),
    }
}

/// The same where it is made for a replay.
pub(crate) fn instance(error: &InstanceError) -> String {
    match error {
        InstanceError::Policy(error) => policy(error),
        InstanceError::Host(_) => String::new(),
    }
}

/// For a built-in program or one of its parameters.
pub(crate) fn builtin(error: &BuiltinError) -> String {
    match error {
        BuiltinError::UnknownName { name, allowed } => did_you_mean(name, allowed.split(", ")),
        BuiltinError::UnknownParam { key, allowed, .. } => did_you_mean(key, allowed.split(", ")),
        _ => String::new(),
    }
}

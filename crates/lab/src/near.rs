//! "Did you mean ...?" for errors of rooms that do not know how names are compared.

use piebald_hw::nearest::did_you_mean;
use piebald_os_model::replace::registry::{self, BuildError};
use piebald_sim::replay::InstanceError;
use piebald_workload::BuiltinError;

/// The names of all replacement policies.
pub(crate) fn policy_names() -> impl Iterator<Item = &'static str> {
    registry::POLICIES.iter().map(|row| row.name)
}

/// What others call policies that are here, or the nearest to what is not.
const OTHER_NAMES: [(&str, &str); 5] = [
    ("opt", "min"),
    ("belady", "min"),
    ("lfu", "w-tinylfu"),
    ("tinylfu", "w-tinylfu"),
    ("lru-k", "lru-2"),
];

/// For a policy, an option of one, or the value of an option.
pub(crate) fn policy(error: &BuildError) -> String {
    match error {
        BuildError::Unknown { name } if name == "all" => {
            "; all of them are \"all\" by itself".to_owned()
        }
        BuildError::Unknown { name } => {
            let other = OTHER_NAMES.iter().find(|(other, _)| other == name);
            other.map_or_else(
                || did_you_mean(name, policy_names()),
                |(_, known)| format!("; did you mean {known}?"),
            )
        }
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

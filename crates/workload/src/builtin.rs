//! Built-in programs by name: `mergesort:1.5MiB`, `triad:size=64MiB,threads=2`.

use core::fmt;

use crate::kernels::{self, Kernel, WrongResult};
use crate::memory::{EmitError, Limits, Sink, Tape};
use crate::spec::{Param, ParamError, Spec, Values};

/// Every built-in program has this parameter too: the number of iterations
/// after which it exits; 0 = it runs until its recording is full.
const ITERATIONS: Param = Param::count(
    "iterations",
    "iterations before it exits; 0 = until the recording is full",
    0,
    0,
    1_000_000_000,
);

/// Other names of built-in programs: McCalpin's STREAM is known by the name of the suite,
/// of which the program is the last kernel.
const ALIASES: [(&str, &str); 1] = [("stream", "triad")];

/// Why a text or a table names no built-in program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuiltinError {
    /// There is no program of that name.
    #[error("builtin \"{name}\" is unknown; allowed: {allowed}")]
    UnknownName {
        /// What was given.
        name: String,
        /// The names that exist.
        allowed: String,
    },
    /// The program has no such parameter.
    #[error("builtin \"{name}\" has no parameter \"{key}\"; allowed: {allowed}")]
    UnknownParam {
        /// The program.
        name: &'static str,
        /// What was given.
        key: String,
        /// The parameters that it has.
        allowed: String,
    },
    /// A parameter is given twice.
    #[error("builtin \"{name}\" has parameter \"{key}\" twice")]
    Twice {
        /// The program.
        name: &'static str,
        /// The parameter.
        key: &'static str,
    },
    /// A parameter's value cannot be used.
    #[error("builtin \"{name}\": {error}")]
    Value {
        /// The program.
        name: &'static str,
        /// What is wrong.
        error: ParamError,
    },
    /// The values do not fit together.
    #[error("builtin \"{name}\": {problem}")]
    Conflict {
        /// The program.
        name: &'static str,
        /// Which values, and what is allowed.
        problem: String,
    },
}

/// Why a built-in program left no recording.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The recording could not take it.
    #[error("builtin \"{name}\" cannot be recorded: {error}")]
    Emit {
        /// The program.
        name: String,
        /// Why.
        error: EmitError,
    },
    /// It computed a wrong result: a defect of the program.
    #[error("builtin \"{name}\" computed a wrong result: {error}")]
    Wrong {
        /// The program.
        name: String,
        /// What is wrong.
        error: WrongResult,
    },
}

/// A built-in program with values for all its parameters.
#[derive(Clone)]
pub struct Builtin {
    kernel: &'static dyn Kernel,
    values: Values,
    iterations: u64,
}

impl Builtin {
    /// Reads `NAME`, `NAME:VALUE`, `NAME:KEY=VALUE,...` or
    /// `NAME:VALUE,KEY=VALUE,...`. A value without a key is the program's first
    /// parameter.
    ///
    /// # Errors
    /// Names the program or parameter, the value, and what is allowed.
    pub fn parse(text: &str) -> Result<Self, BuiltinError> {
        let mut parts = text.splitn(2, ':');
        let name = parts.next().unwrap_or_default();
        let mut entries = Vec::new();
        let rest = parts.flat_map(|rest| rest.split(','));
        for (i, entry) in rest.map(str::trim).enumerate() {
            match entry.split_once('=') {
                Some((key, value)) => entries.push((key.trim(), value.trim())),
                None if i == 0 => entries.push(("", entry)),
                None => entries.push((entry, "")),
            }
        }
        Self::from_table(name.trim(), entries)
    }

    /// Reads a name and `(key, value)` pairs, as a scenario's table gives them.
    /// An empty key is the program's first parameter.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    pub fn from_table<'a>(
        name: &str,
        entries: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, BuiltinError> {
        let name = ALIASES.iter().find(|a| a.0 == name).map_or(name, |a| a.1);
        let Some(kernel) = kernels::all().iter().find(|k| k.spec().name == name) else {
            return Err(BuiltinError::UnknownName {
                name: name.to_owned(),
                allowed: names(list().map(|s| s.name).chain(ALIASES.map(|a| a.0))),
            });
        };
        let mut this = Self {
            kernel: *kernel,
            values: Values::defaults(kernel.spec()),
            iterations: 0,
        };
        let mut given = Vec::new();
        for (key, value) in entries {
            let key = this.assign(key, value)?;
            if given.contains(&key) {
                let name = this.kernel.spec().name;
                return Err(BuiltinError::Twice { name, key });
            }
            given.push(key);
        }
        let name = this.kernel.spec().name;
        match this.kernel.check(&this.values) {
            Ok(()) => Ok(this),
            Err(problem) => Err(BuiltinError::Conflict { name, problem }),
        }
    }

    /// Sets one parameter; returns its name.
    fn assign(&mut self, key: &str, value: &str) -> Result<&'static str, BuiltinError> {
        let spec = self.kernel.spec();
        let wrong = |error| BuiltinError::Value {
            name: spec.name,
            error,
        };
        if key == ITERATIONS.key {
            self.iterations = ITERATIONS.read(value).map_err(wrong)?;
            return Ok(ITERATIONS.key);
        }
        let found = match key {
            "" => spec.params.first().map(|p| (0, p)),
            _ => spec.params.iter().enumerate().find(|(_, p)| p.key == key),
        };
        let Some((index, param)) = found else {
            return Err(BuiltinError::UnknownParam {
                name: spec.name,
                key: key.to_owned(),
                allowed: names(spec.params.iter().chain([&ITERATIONS]).map(|p| p.key)),
            });
        };
        self.values.set(index, param.read(value).map_err(wrong)?);
        Ok(param.key)
    }

    /// Its name and parameters.
    pub fn spec(&self) -> &'static Spec {
        self.kernel.spec()
    }

    /// Iterations after which it exits; 0 = none.
    pub(crate) const fn iterations(&self) -> u64 {
        self.iterations
    }

    /// The value of a parameter of its own.
    pub(crate) fn value(&self, key: &str) -> Option<u64> {
        let at = self.spec().params.iter().position(|p| p.key == key)?;
        Some(self.values.get(at))
    }

    /// Number of its threads.
    pub fn threads(&self) -> u32 {
        self.kernel.threads(&self.values)
    }

    /// The same, ending after so many iterations; 0 = it runs until its recording is full.
    #[must_use]
    pub fn with_iterations(&self, iterations: u64) -> Self {
        Self {
            iterations,
            ..self.clone()
        }
    }

    /// Runs it once into a sink, with at most `refs` references per thread after
    /// set-up, and checks its results. Equal arguments give equal output.
    /// Returns the number of references, set-up and all threads included.
    ///
    /// # Errors
    /// If the sink refuses something or a result is wrong.
    pub fn run(&self, seed: u64, refs: u64, sink: &mut dyn Sink) -> Result<u64, RunError> {
        let limits = Limits {
            refs,
            iterations: self.iterations,
        };
        let name = self.to_string();
        let mut tape = Tape::new(sink, &name, limits);
        if let Err(error) = self.kernel.run(&self.values, seed, &mut tape) {
            return Err(RunError::Wrong { name, error });
        }
        tape.finish()
            .map_err(|error| RunError::Emit { name, error })
    }
}

/// Specs of all built-in programs. All of them take `iterations` too.
pub fn list() -> impl Iterator<Item = &'static Spec> {
    kernels::all().iter().map(|k| k.spec())
}

fn names(all: impl Iterator<Item = &'static str>) -> String {
    all.collect::<Vec<_>>().join(", ")
}

impl core::str::FromStr for Builtin {
    type Err = BuiltinError;

    fn from_str(text: &str) -> Result<Self, BuiltinError> {
        Self::parse(text)
    }
}

impl fmt::Display for Builtin {
    /// With all parameters that are not at their default, so that equal
    /// programs print equally and the text reads back as the same program.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spec = self.spec();
        f.write_str(spec.name)?;
        let own = spec.params.iter().enumerate();
        let all = own
            .map(|(i, p)| (p, self.values.get(i)))
            .chain([(&ITERATIONS, self.iterations)]);
        let mut separator = ':';
        for (param, value) in all.filter(|(p, v)| p.default != *v) {
            write!(f, "{separator}{}={}", param.key, param.show(value))?;
            separator = ',';
        }
        Ok(())
    }
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Builtin({self})")
    }
}

impl PartialEq for Builtin {
    fn eq(&self, other: &Self) -> bool {
        self.spec().name == other.spec().name
            && self.values == other.values
            && self.iterations == other.iterations
    }
}

impl Eq for Builtin {}

impl core::hash::Hash for Builtin {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        (self.spec().name, &self.values, self.iterations).hash(state);
    }
}

//! Recounts of everything that MFC keeps in two forms.

use core::fmt;

use super::{
    room::{DomainId, Room, domains},
    store::NONE,
    sync::Relaxed,
};

/// An inconsistency that `validate` found: a defect of this room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// What does not hold.
    pub rule: &'static str,
    /// A domain that shows it.
    pub domain: DomainId,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (domain {})", self.rule, self.domain.0)
    }
}

impl core::error::Error for Broken {}

impl Room<'_> {
    pub fn validate(&self) -> Result<(), Broken> {
        domains(self.machine.domains).try_for_each(|d| {
            self.check_domain(d)
                .map_err(|rule| Broken { rule, domain: d })
        })?;
        self.check_keys()
    }

    pub fn validate_bounds(&self) -> Result<(), Broken> {
        let is_low = |d: &DomainId| {
            let least = self.books(*d).map_or(0, |b| b.least.load(Relaxed));
            let held = self.books(*d).map_or(0, |b| b.held.load(Relaxed) as usize);
            let mut entries = self.entries(*d).iter().take(held);
            entries.any(|e| self.used(*d, e.file.load(Relaxed)) < least)
        };
        match domains(self.machine.domains).find(is_low) {
            Some(domain) => Err(Broken {
                rule: "a file has fewer uses than the least",
                domain,
            }),
            None => Ok(()),
        }
    }

    fn check_domain(&self, id: DomainId) -> Result<(), &'static str> {
        let books = self.books(id).ok_or("a domain has no state")?;
        if books.lock.is_taken() || books.aging.is_taken() {
            return Err("a lock was not given back");
        }
        let held = books.held.load(Relaxed) as usize;
        let entries = self.entries(id).get(..held);
        let entries = entries.ok_or("more files are held than there are entries")?;
        let mut bytes = 0u64;
        for (at, entry) in entries.iter().enumerate() {
            let file = entry.file.load(Relaxed);
            bytes = bytes.saturating_add(u64::from(entry.bytes.load(Relaxed)));
            let record = self.file(file).ok_or("an entry names no file")?;
            if record.holders.load(Relaxed) & id.bit() == 0 {
                return Err("an entry's file does not know that it is held");
            }
            let before = entries.get(..at).unwrap_or(&[]);
            if before.iter().any(|e| e.file.load(Relaxed) == file) {
                return Err("a file is held twice");
            }
        }
        if bytes != books.files.load(Relaxed) {
            return Err("the bytes of the files held were miscounted");
        }
        self.check_holders(id, held)?;
        self.check_spill(id)
    }

    fn check_holders(&self, id: DomainId, held: usize) -> Result<(), &'static str> {
        let records = self.parts.files.iter().take(self.machine.files as usize);
        let held_by = records.filter(|r| r.holders.load(Relaxed) & id.bit() != 0);
        match held_by.count() == held {
            true => Ok(()),
            false => Err("a file thinks that it is held and is not"),
        }
    }

    /// What the domains at the same shared cache have no room for, once more.
    fn check_spill(&self, id: DomainId) -> Result<(), &'static str> {
        let Some(facts) = self.facts(id).filter(|f| f.group != NONE) else {
            return Ok(());
        };
        let beside = self.parts.domains.iter();
        let beside = beside.filter(|d| d.facts.group == facts.group);
        let spilled = beside.fold(0u64, |sum, d| {
            let over = d.books.files.load(Relaxed).saturating_sub(d.facts.own);
            sum.saturating_add(over)
        });
        let shared = self.parts.shared.get(usize::from(facts.group));
        match shared.map(|s| s.spilled.load(Relaxed)) == Some(spilled) {
            true => Ok(()),
            false => Err("the bytes in a shared cache were miscounted"),
        }
    }

    /// Every file is found by its name, and no name twice.
    fn check_keys(&self) -> Result<(), Broken> {
        let mut files = 0..self.machine.files;
        let lost = |file: u32| {
            let key = self.key_of(file);
            key.is_some_and(|k| self.find(k) != Some(file))
        };
        match files.any(lost) {
            true => Err(Broken {
                rule: "a file is not found by its name",
                domain: DomainId(0),
            }),
            false => Ok(()),
        }
    }
}

//! The same programs in a real kernel and in the modelled one: rows of Rainbow and
//! of SRM-buffer (S-2, S-3, S-5, S-6, S-9 to S-14) in miniature.
//!
//! The real kernel is the distribution's with Piebald's module, under QEMU and watched by the
//! machine model ([`Hosts`]). The modelled one replays recordings of the very programs
//! that the guest runs, on the same machine with the same parts of the model on. So what
//! differs is the kernel. What is run and how far both agree is data (`reproduce/guest/rainbow` and `reproduce/guest/srm`); programs,
//! sizes and rules were written down before the first result (`reproduce/guest/protocol.md`).

use std::path::Path;

use piebald_lab::host::Hosts;

use crate::{
    ReproduceError, System,
    data::{DataPaper, Known},
};

/// The three files of a paper.
macro_rules! files {
    ($folder:literal) => {
        [
            include_str!(concat!("../../../reproduce/guest/", $folder, "/grid.toml")),
            include_str!(concat!("../../../reproduce/guest/", $folder, "/rows.toml")),
            include_str!(concat!(
                "../../../reproduce/guest/",
                $folder,
                "/programs.toml"
            )),
        ]
    };
}

/// The rows of a system that are run in a real kernel as well; none if the module does not have the system.
///
/// # Errors
/// Its files are wrong: a defect.
pub fn guest_paper(
    system: System,
    hosts: &'static dyn Hosts,
) -> Result<Option<DataPaper>, ReproduceError> {
    let [grid, rows, programs] = match system {
        System::Rainbow => files!("rainbow"),
        System::Srm => files!("srm"),
        System::Dulo | System::Mfc | System::Hvr => return Ok(None),
    };
    let name = system.name();
    let folder = Path::new("reproduce/guest").join(name);
    let paper = DataPaper::new((name, &folder), [grid, rows], Some(programs), Known::new());
    Ok(Some(paper?.on(hosts)))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use piebald_experiment::{Document, HostName};
    use piebald_guest::AllHosts;

    use super::*;
    use crate::{Hooks, Options, Source, Wanted, experiments, reproduce, stand_ins};

    fn paper(system: System) -> DataPaper {
        let paper = guest_paper(system, &AllHosts).unwrap_or_else(|e| panic!("{e}"));
        paper.unwrap_or_else(|| panic!("{}: the module has it", system.name()))
    }

    fn hooks<'a>(record: &'a crate::Recorder<'a>) -> Hooks<'a> {
        Hooks {
            stop: None,
            progress: None,
            record,
            store: None,
        }
    }

    #[test]
    fn only_what_the_module_has_can_be_run() {
        for system in System::ALL {
            let found = guest_paper(system, &AllHosts).unwrap_or_else(|e| panic!("{e}"));
            let has = matches!(system, System::Rainbow | System::Srm);
            assert_eq!(found.is_some(), has, "{}", system.name());
            let Some(paper) = found else { continue };
            let paper = paper.checked().unwrap_or_else(|e| panic!("{e}"));
            assert!(paper.ids().iter().all(|id| system.targets().contains(id)));
            assert!(paper.title().starts_with(system.title()));
            assert!(paper.has_guests().unwrap_or_else(|e| panic!("{e}")));
        }
    }

    #[test]
    fn what_is_recorded_is_made_before() {
        for [_, _, programs] in [files!("rainbow"), files!("srm")] {
            for program in stand_ins(programs).unwrap_or_else(|e| panic!("{e}")) {
                let [input] = &program.inputs[..] else {
                    panic!("{}: one input", program.name);
                };
                let is_own = |name: &str| piebald_guest::own_program(name) || name.contains('.');
                let is_made = input.strip_prefix("programs/").is_some_and(is_own);
                assert!(is_made || input.starts_with("data-"), "{input}");
                assert!(
                    program
                        .command
                        .iter()
                        .any(|word| word.contains(input.as_str()))
                );
            }
        }
    }

    /// Experiments of a row, by the host that can read them.
    fn numbers(system: System, id: &str) -> [usize; 2] {
        let recorded = |_: &Wanted<'_>, _: &Path| Ok(PathBuf::from("/nowhere/program.pbr"));
        let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let options = Options {
            quick: true,
            seed: 7,
            inputs: folder.path().to_owned(),
            module: Some(PathBuf::from("/tmp/piebald.ko")),
            ..Options::default()
        };
        let source = Source::Folder(Box::new(paper(system)));
        let found = experiments(&source, &options, hooks(&recorded), id);
        let mut numbers = [0, 0];
        for one in found.unwrap_or_else(|e| panic!("{id}: {e}")) {
            let document = |host| Document::new(Path::new(id), one.text.as_str()).on(host);
            if document(HostName::Model).experiment().is_ok() {
                numbers[0] += 1;
            } else {
                let read = document(HostName::Guest).experiment();
                let read = read.unwrap_or_else(|e| panic!("{e}\n{}", one.text));
                assert_eq!(read.seed.get(), 7);
                assert!(read.guest.module.is_some(), "{}", one.text);
                numbers[1] += 1;
            }
        }
        numbers
    }

    #[test]
    fn experiments_are_files_of_both_hosts() {
        assert_eq!(numbers(System::Rainbow, "R-2"), [2, 2]);
        // A program among three and grep: by instructions, by time, and in guests.
        assert_eq!(numbers(System::Srm, "S-13"), [2, 1]);
        // One grep and three.
        assert_eq!(numbers(System::Srm, "S-14"), [4, 2]);
    }

    #[test]
    fn without_a_module_nothing_is_run() {
        let none = |_: &Wanted<'_>, _: &Path| Err("none".to_owned());
        let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let options = Options {
            quick: true,
            only: vec!["S-2".to_owned()],
            inputs: folder.path().to_owned(),
            ..Options::default()
        };
        let source = Source::Folder(Box::new(paper(System::Srm)));
        let error = reproduce(&source, &options, hooks(&none)).expect_err("refused");
        assert!(error.to_string().contains("--guest"), "{error}");
    }
}

//! What shells and `man` are told of the command line: made of the same definitions that read it.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Command, CommandFactory, ValueEnum};
use clap_mangen::Man;
use piebald_report::write_atomically;

use crate::{
    Cli,
    command_line::with_reference,
    failure::{Failure, print},
};

/// Name by which shells know the command.
const NAME: &str = "piebald";

/// Arguments of `piebald completions`.
#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Shells whose completions are tried by a test or by people.
#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Arguments of `piebald man`.
#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// Folder to write the pages to, one for each verb; it is made if it is not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Prints the completions of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let shell = match args.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), NAME, &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the manual pages.
pub(crate) fn man(args: &ManArgs) -> Result<ExitCode, Failure> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::failed(format!("{}: {e}", folder.display())))?;
    let mut command = with_reference(Cli::command()).disable_help_subcommand(true);
    command.build();
    write_pages(&command, folder)?;
    Ok(ExitCode::SUCCESS)
}

/// The page of a command and those of its verbs.
fn write_pages(command: &Command, folder: &Path) -> Result<(), Failure> {
    let source = format!("{NAME} {}", env!("PIEBALD_VERSION"));
    let man = Man::new(command.clone()).manual("Piebald").source(source);
    let mut page = Vec::new();
    man.render(&mut page).map_err(Failure::failed)?;
    if command.get_name() == NAME {
        page.extend_from_slice(SHARED.as_bytes());
    }
    write_atomically(&folder.join(man.get_filename()), &page).map_err(Failure::failed)?;
    let mut verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    verbs.try_for_each(|verb| write_pages(verb, folder))
}

/// What the definitions do not say and all verbs share, behind the page of the command: the
/// contents of `docs/command-line.md` in short.
const SHARED: &str = r#".SH "EXIT STATUS"
.TP
.B 0
Done.
.TP
.B 1
It failed, or a part of it is missing: the output then says PARTIAL.
.TP
.B 2
The command line or an input file is not what it has to be. The message names the place, the
value and what is allowed.
.TP
.B 128+N
Signal N stopped it: 130 after Ctrl\-C, 143 after SIGTERM.
.PP
.B piebald run
has the exit status of the program that it starts.
.SH ENVIRONMENT
.TP
.B PIEBALD_PLUGIN
A library to use in place of the recorder's plugin, which is inside the command.
.TP
.B XDG_CACHE_HOME
Where recordings of commands in scenarios are kept, in its folder
.BR piebald ;
else in
.BR ~/.cache/piebald .
.TP
.B NO_COLOR
If set and not empty, no escape codes are written to terminals.
"#;

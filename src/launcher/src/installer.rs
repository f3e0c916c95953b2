//! The installer of packages, which reads what strangers made: it writes to its own folder alone.

use crate::setup_error::SetupError;
use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Becomes the installer: the most bytes of a file and of memory, the seconds of processor time, the folder, the program
/// and its arguments. Returns only why it couldn't.
pub(crate) fn exec(mut arguments: impl Iterator<Item = OsString>) -> SetupError {
    const STAGE: &str = "starting the installer";
    let mut amount = || arguments.next().and_then(|amount| amount.to_str()?.parse::<u64>().ok());
    let (bytes, memory, seconds) = (amount(), amount(), amount());
    let (Some(bytes), Some(memory), Some(seconds), Some(folder), Some(program)) =
        (bytes, memory, seconds, arguments.next(), arguments.next())
    else {
        return SetupError::new(STAGE, "its limits, its folder or its program were not named");
    };
    let same = |amount| (amount, amount);
    for (resource, (soft, hard)) in [
        (Resource::Fsize, same(bytes)),
        (Resource::Data, same(memory)),
        // The signal that names the reason comes with the lower one.
        (Resource::Cpu, (seconds, seconds.saturating_add(1))),
        (Resource::Core, same(0)),
    ] {
        // What is limited more already stays so.
        let _ = setrlimit(resource, Rlimit { current: Some(soft), maximum: Some(hard) });
    }
    // Where the kernel can't, it runs as any other program does.
    let _ = confine(Path::new(&folder));
    SetupError { stage: STAGE.into(), cause: Command::new(program).args(arguments).exec() }
}

fn confine(folder: &Path) -> Result<(), RulesetError> {
    const NEWEST: ABI = ABI::V6;
    let writing = AccessFs::from_write(NEWEST);
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(writing)?.create()?;
    for (path, access) in [(folder, writing), (Path::new("/dev/null"), AccessFs::WriteFile.into())] {
        if let Ok(descriptor) = PathFd::new(path) {
            ruleset = ruleset.add_rule(PathBeneath::new(descriptor, access))?;
        }
    }
    ruleset.restrict_self().map(drop)
}

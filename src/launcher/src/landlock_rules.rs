//! Landlock: which files a script may open, and whom it may talk to.

use crate::setup_error::SetupError;
use crate::wire::{LaunchRequest, Profile};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use std::io;
use std::path::Path;

const STAGE: &str = "landlock";
/// The newest whose rights are handled here. Where the kernel knows fewer, it holds those.
const NEWEST: ABI = ABI::V6;
/// Without a namespace of processes, signals and abstract sockets must be held back by it.
const LEAST_ALONE: i32 = 6;

/// Confines this process and all that it starts. Returns the version of landlock that holds.
pub(crate) fn confine(request: &LaunchRequest) -> Result<i32, SetupError> {
    let version = version()
        .ok_or_else(|| SetupError { stage: STAGE.into(), cause: io::Error::from_raw_os_error(libc::EOPNOTSUPP) })?;
    if request.profile == Profile::Restricted && version < LEAST_ALONE {
        let words = format!("the kernel has version {version} of it, and without namespaces {LEAST_ALONE} is needed");
        return Err(SetupError::new(STAGE, words));
    }
    let status = ruleset(request)
        .and_then(RulesetCreated::restrict_self)
        .map_err(|error| SetupError { stage: STAGE.into(), cause: io::Error::other(error) })?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err(SetupError::new(STAGE, "the kernel does not enforce it"));
    }
    Ok(version)
}

fn ruleset(request: &LaunchRequest) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?;
    if request.profile == Profile::Restricted {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let mut ruleset = ruleset.create()?.set_compatibility(CompatLevel::BestEffort);
    let reading = AccessFs::from_read(NEWEST);
    let everything = AccessFs::from_all(NEWEST) & !AccessFs::MakeBlock & !AccessFs::MakeChar & !AccessFs::IoctlDev;
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    for (paths, access) in [(&request.readable, reading), (&request.writable, everything), (&request.devices, device)] {
        for path in paths {
            ruleset = allow(ruleset, path, access)?;
        }
    }
    Ok(ruleset)
}

/// What is not there can't be opened either.
fn allow(
    ruleset: RulesetCreated,
    path: &Path,
    access: landlock::BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(descriptor) = PathFd::new(path) else { return Ok(ruleset) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
    ruleset.add_rule(PathBeneath::new(descriptor, access))
}

/// The version of landlock that the kernel offers.
fn version() -> Option<i32> {
    const ASK_VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the kernel reads no memory: it takes a null pointer of length zero.
    let answer = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0_usize, ASK_VERSION)
    };
    i32::try_from(answer).ok().filter(|version| *version > 0)
}

//! Who the launcher and the script are, and what they may do.

use crate::setup_error::{At, SetupError};
use crate::wire::{LaunchRequest, Profile};
use rustix::process::{DumpableBehavior, getpid, set_child_subreaper, set_dumpable_behavior};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits,
    set_no_new_privs,
};

const STAGE: &str = "dropping privileges";

/// What the launcher itself still needs: to end the script's processes, to see how much memory they share and which
/// files they hold, to remove its folder, and until the script starts, to make it somebody else.
const KEPT: CapabilitySet = CapabilitySet::KILL
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER);

/// Takes over the processes that lose their parents.
pub(crate) fn become_reaper(profile: Profile) -> Result<(), SetupError> {
    const STAGE: &str = "adopting processes";
    if getpid().is_init() {
        return Ok(());
    }
    if profile == Profile::Isolated {
        return Err(SetupError::new(STAGE, "it is not the first process of a namespace"));
    }
    set_child_subreaper(Some(getpid())).at(STAGE)
}

/// How long it may work in one go, in nanoseconds.
const BRIEF: u64 = 100_000;

/// Has the launcher come to a processor as soon as it wakes up, since it needs it for a moment only: it would look at the
/// script when the script takes a rest. With `false`, as everybody does. Where the kernel can't, it stays so.
pub(crate) fn wake_at_once(wanted: bool) {
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        slice: u64,
        deadline: u64,
        period: u64,
    }
    const SIZE: u32 = 48;
    const {
        assert!(size_of::<Attributes>() == SIZE as usize);
    };
    let Ok(nice) = rustix::process::getpriority_process(None) else { return };
    let slice = if wanted { BRIEF } else { 0 };
    let attributes = Attributes { size: SIZE, policy: 0, flags: 0, nice, priority: 0, slice, deadline: 0, period: 0 };
    // SAFETY: the structure has the size that it tells, and lives until the call returns.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// Drops what the launcher needs no longer, and keeps the script from looking into it.
pub(crate) fn shed(request: &LaunchRequest) -> Result<(), SetupError> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at(STAGE)?;
    if request.profile == Profile::Unconfined {
        return Ok(());
    }
    let held = capabilities(None).at(STAGE)?;
    let kept = held.permitted & KEPT;
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() })
        .at(STAGE)?;
    clear_ambient_capability_set().at(STAGE)
}

/// In the script's process: becomes another user, if one is given, and gives up every privilege for good.
pub(crate) fn drop_all(request: &LaunchRequest) -> Result<(), SetupError> {
    if request.profile == Profile::Unconfined {
        return Ok(());
    }
    // Where it may be done. What is left of the set can't be had without a set-user-id program, and none works here.
    if capabilities(None).at(STAGE)?.effective.contains(CapabilitySet::SETPCAP) {
        let secured = CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
        set_capabilities_secure_bits(secured).at(STAGE)?;
        for bit in 0..64 {
            let one = CapabilitySet::from_bits_retain(1 << bit);
            if capability_is_in_bounding_set(one).unwrap_or(false) {
                remove_capability_from_bounding_set(one).at(STAGE)?;
            }
        }
    }
    if let Some(user) = request.user {
        become_user(user)?;
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none }).at(STAGE)?;
    set_no_new_privs(true).at(STAGE)
}

/// The number of processes is not limited for root, so that the script must be somebody else.
fn become_user(user: u32) -> Result<(), SetupError> {
    const STAGE: &str = "becoming another user";
    // SAFETY: no groups are given, so that no memory is read.
    if unsafe { libc::setgroups(0, std::ptr::null()) } != 0 {
        return Err(SetupError::last(STAGE));
    }
    // SAFETY: takes plain numbers; the process has one thread.
    if unsafe { libc::setresgid(user, user, user) } != 0 {
        return Err(SetupError::last(STAGE));
    }
    // SAFETY: takes plain numbers; the process has one thread.
    if unsafe { libc::setresuid(user, user, user) } != 0 {
        return Err(SetupError::last(STAGE));
    }
    Ok(())
}

/// Whether nothing is left, as the system reports it.
pub(crate) fn has_none() -> bool {
    capabilities(None).is_ok_and(|held| (held.effective | held.permitted | held.inheritable).is_empty())
}

//! Seccomp: which system calls a script may make.
//!
//! A list of what is denied, since what interpreters and packages call is open-ended. Calls that are newer than the list
//! do not exist for the script.

#[cfg(all(test, target_arch = "x86_64"))]
mod allowed;

use crate::setup_error::SetupError;
use crate::wire::{LaunchRequest, Profile};
use libc::c_long;
use linux_raw_sys::{general, ioctl};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Compare, SeccompCondition as Condition,
    SeccompFilter, SeccompRule as Rule, TargetArch, apply_filter, sock_filter,
};
use std::collections::BTreeMap;
use std::io;

const STAGE: &str = "seccomp";

/// The last call that was looked at when this list was made: `mseal`, of Linux 6.10.
const LAST_KNOWN: u32 = 462;
/// Not every C library that libc describes knows these.
const FCHMODAT2: c_long = general::__NR_fchmodat2 as c_long;
const IO_PGETEVENTS: c_long = general::__NR_io_pgetevents as c_long;
const KEXEC_FILE_LOAD: c_long = general::__NR_kexec_file_load as c_long;
const STATMOUNT: c_long = general::__NR_statmount as c_long;
const LISTMOUNT: c_long = general::__NR_listmount as c_long;
const MAP_SHADOW_STACK: c_long = general::__NR_map_shadow_stack as c_long;
const LSM_SET_SELF_ATTR: c_long = general::__NR_lsm_set_self_attr as c_long;
/// `PR_SCHED_CORE`.
const CORE_SCHEDULING: libc::c_int = 62;
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// `FS_IOC_SETFLAGS` and `FS_IOC_SETVERSION` with their 32-bit forms, `FS_IOC_FSSETXATTR`, `FS_IOC_ENABLE_VERITY`,
/// `FS_IOC_SET_ENCRYPTION_POLICY`, `FICLONE`, `FICLONERANGE`, `FIDEDUPERANGE`.
const ATTRIBUTES: [u64; 10] = [
    0x4008_6602,
    0x4004_6602,
    0x4008_7602,
    0x4004_7602,
    0x401c_5820,
    0x4080_6685,
    0x800c_6613,
    0x4004_9409,
    0x4020_940d,
    0xc018_9436,
];

type Rules = BTreeMap<i64, Vec<Rule>>;

/// Filters the calls of this process and of all that it starts.
pub(crate) fn apply(request: &LaunchRequest) -> Result<(), SetupError> {
    let fault =
        |error: &dyn std::error::Error| SetupError { stage: STAGE.into(), cause: io::Error::other(error.to_string()) };
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| fault(&error))?;
    let mut filters: Vec<BpfProgram> = vec![unknown()];
    for (rules, errno) in lists(request.profile == Profile::Restricted).map_err(|error| fault(&error))? {
        let action = SeccompAction::Errno(errno.cast_unsigned());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch).map_err(|error| fault(&error))?;
        filters.push(filter.try_into().map_err(|error: seccompiler::BackendError| fault(&error))?);
    }
    filters.iter().try_for_each(|filter| apply_filter(filter).map_err(|error| fault(&error)))
}

/// What is not done, and the error number that it is answered with; 0 as if it had been.
///
/// `alone`: there are no namespaces.
fn lists(alone: bool) -> Result<Vec<(Rules, libc::c_int)>, seccompiler::BackendError> {
    let mut lists = vec![
        (denied(alone)?, libc::EPERM),
        (missing(), libc::ENOSYS),
        (moved(), libc::EINVAL),
        (always(&[libc::SYS_flock]), libc::ENOLCK),
    ];
    if alone {
        lists.push((buffers()?.into_iter().chain(pretended()).collect(), 0));
        lists.push((attributes(), libc::EOPNOTSUPP));
    } else {
        lists.push((buffers()?, 0));
        lists.push((new_attributes(), libc::EOPNOTSUPP));
    }
    Ok(lists)
}

/// Another number space would slip past the list, and so would calls that it doesn't know.
fn unknown() -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20;
    const IF_GREATER: u16 = 0x25;
    const RETURN: u16 = 0x06;
    const ERRNO: u32 = 0x0005_0000;
    const ALLOW: u32 = 0x7fff_0000;
    let one = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    // What lies above the last known one includes the x32 space.
    #[cfg(target_arch = "x86_64")]
    const {
        assert!(X32 > LAST_KNOWN);
    };
    vec![
        one(LOAD_NUMBER, 0, 0, 0),
        one(IF_GREATER, 0, 1, LAST_KNOWN),
        one(RETURN, 0, 0, ERRNO | libc::ENOSYS.cast_unsigned()),
        one(RETURN, 0, 0, ALLOW),
    ]
}

fn always(calls: &[c_long]) -> Rules {
    calls.iter().map(|call| (*call, Vec::new())).collect()
}

/// As on an older kernel. The C library does without the first, whose arguments can't be looked into. Of the contexts of
/// asynchronous input there are few on the machine, for all users together; rules of landlock take memory that no limit sees.
fn missing() -> Rules {
    always(&[
        libc::SYS_clone3,
        libc::SYS_io_setup,
        libc::SYS_io_destroy,
        libc::SYS_io_submit,
        libc::SYS_io_cancel,
        libc::SYS_io_getevents,
        IO_PGETEVENTS,
        libc::SYS_landlock_create_ruleset,
        libc::SYS_landlock_add_rule,
        libc::SYS_landlock_restrict_self,
    ])
}

/// Moving data between files without copying it: pipes and sockets would hold pages that no limit sees. Whoever calls
/// these is prepared to copy.
fn moved() -> Rules {
    always(&[libc::SYS_splice, libc::SYS_tee, libc::SYS_sendfile])
}

/// Larger buffers of sockets, whose memory no limit sees. Asking for them is a hint, so that it seems to succeed.
fn buffers() -> Result<Rules, seccompiler::BackendError> {
    let equal =
        |index, value: libc::c_int| Condition::new(index, Length::Dword, Compare::Eq, u64::from(value.cast_unsigned()));
    let sizes = [libc::SO_SNDBUF, libc::SO_RCVBUF, libc::SO_SNDBUFFORCE, libc::SO_RCVBUFFORCE];
    let each = sizes.into_iter().map(|size| Rule::new(vec![equal(1, libc::SOL_SOCKET)?, equal(2, size)?]));
    Ok(Rules::from([(libc::SYS_setsockopt, each.collect::<Result<_, _>>()?)]))
}

/// In a file system in memory, lists of access and other attributes of a file are memory that no limit sees.
fn new_attributes() -> Rules {
    always(&[libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr])
}

/// What is read of a file besides its content, which landlock doesn't hold back either: as on a file system without.
fn attributes() -> Rules {
    always(&[
        libc::SYS_getxattr,
        libc::SYS_lgetxattr,
        libc::SYS_fgetxattr,
        libc::SYS_listxattr,
        libc::SYS_llistxattr,
        libc::SYS_flistxattr,
    ])
}

/// Landlock doesn't hold these back. They answer as if they had been done, since much that is harmless calls them.
fn pretended() -> Rules {
    let rules = always(&[
        libc::SYS_fchmod,
        libc::SYS_fchmodat,
        FCHMODAT2,
        libc::SYS_fchown,
        libc::SYS_fchownat,
        libc::SYS_utimensat,
        libc::SYS_setxattr,
        libc::SYS_lsetxattr,
        libc::SYS_fsetxattr,
        libc::SYS_removexattr,
        libc::SYS_lremovexattr,
        libc::SYS_fremovexattr,
    ]);
    #[cfg(target_arch = "x86_64")]
    let rules = rules.into_iter().chain(always(&[
        libc::SYS_chmod,
        libc::SYS_chown,
        libc::SYS_lchown,
        libc::SYS_utime,
        libc::SYS_utimes,
        libc::SYS_futimesat,
    ]));
    rules.into_iter().collect()
}

/// `alone`: there are no namespaces.
fn denied(alone: bool) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = always(DENIED);
    #[cfg(target_arch = "x86_64")]
    rules.extend(always(DENIED_ON_X86_64));
    let equal = |index, value: u64| Condition::new(index, Length::Dword, Compare::Eq, value);
    let unequal = |index, value: u64| Condition::new(index, Length::Dword, Compare::Ne, value);
    let flag = |index, value: u64| Condition::new(index, Length::Qword, Compare::MaskedEq(value), value);

    // New namespaces.
    let spaces = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    let each = spaces.into_iter().map(|space| Rule::new(vec![flag(0, u64::from(space.cast_unsigned()))?]));
    rules.insert(libc::SYS_clone, each.collect::<Result<_, _>>()?);

    // Typing into the terminal, and attributes of files that are open for reading only.
    let requests = [ioctl::TIOCSTI, ioctl::TIOCLINUX, ioctl::TIOCSETD, ioctl::TIOCCONS];
    let each = requests.into_iter().map(u64::from).chain(ATTRIBUTES).map(|request| Rule::new(vec![equal(1, request)?]));
    rules.insert(libc::SYS_ioctl, each.collect::<Result<_, _>>()?);

    // Memory that is shared and no file's, which stays when nobody maps it; stacks that grow, and pages of other sizes,
    // which the limit of a process's data doesn't count.
    let kinds = [libc::MAP_SHARED | libc::MAP_ANONYMOUS, libc::MAP_GROWSDOWN, libc::MAP_HUGETLB];
    let each = kinds.into_iter().map(|kind| Rule::new(vec![flag(3, u64::from(kind.cast_unsigned()))?]));
    rules.insert(libc::SYS_mmap, each.collect::<Result<_, _>>()?);

    // By this limit the script's processes are told from all others.
    let mark = || equal(0, u64::from(general::RLIMIT_RTTIME));
    rules.insert(libc::SYS_setrlimit, vec![Rule::new(vec![mark()?])?]);
    let marked = vec![equal(1, u64::from(general::RLIMIT_RTTIME))?, Condition::new(2, Length::Qword, Compare::Ne, 0)?];
    rules.insert(libc::SYS_prlimit64, vec![Rule::new(marked)?]);

    // Pairs are connected for good. Of datagrams, each could be sent to any path; of other families, the kernel's modules
    // would be loaded.
    let kind =
        |value: libc::c_int| Condition::new(1, Length::Dword, Compare::MaskedEq(0xf), u64::from(value.cast_unsigned()));
    let other = std::iter::once(Rule::new(vec![unequal(0, u64::from(libc::AF_UNIX.cast_unsigned()))?]));
    let pair = [libc::SOCK_DGRAM, libc::SOCK_RAW].into_iter().map(|one| Rule::new(vec![kind(one)?]));
    rules.insert(libc::SYS_socketpair, other.chain(pair).collect::<Result<_, _>>()?);

    // Larger pipes, whose memory no limit sees; leases and notes, which hold up other processes that open a file; locks that
    // belong to no process, in whose descriptors they could be counted.
    let commands = [libc::F_SETPIPE_SZ, libc::F_SETLEASE, libc::F_NOTIFY, libc::F_OFD_SETLK, libc::F_OFD_SETLKW];
    let each = commands.into_iter().map(|command| Rule::new(vec![equal(1, u64::from(command.cast_unsigned()))?]));
    rules.insert(libc::SYS_fcntl, each.collect::<Result<_, _>>()?);

    // Other layouts of memory, but asking for the present one.
    rules.insert(libc::SYS_personality, vec![Rule::new(vec![unequal(0, 0)?, unequal(0, 0xffff_ffff)?])?]);

    // A processor's other half to itself. Without namespaces, the launcher must be able to look into the script too.
    let options = [CORE_SCHEDULING].into_iter().chain(alone.then_some(libc::PR_SET_DUMPABLE));
    let each = options.map(|option| Rule::new(vec![equal(0, u64::from(option.cast_unsigned()))?]));
    rules.insert(libc::SYS_prctl, each.collect::<Result<_, _>>()?);

    if alone {
        // Whose priority, and of what: this process, and nothing of the user's.
        for (call, process) in [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)] {
            rules.insert(call, vec![Rule::new(vec![unequal(0, process)?])?, Rule::new(vec![unequal(1, 0)?])?]);
        }
        // Other processes of the user: the first argument names one.
        for (call, index) in [
            (libc::SYS_prlimit64, 0),
            (libc::SYS_sched_setaffinity, 0),
            (libc::SYS_sched_setparam, 0),
            (libc::SYS_sched_setscheduler, 0),
        ] {
            rules.entry(call).or_default().push(Rule::new(vec![unequal(index, 0)?])?);
        }
    }
    Ok(rules)
}

const DENIED: &[c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // The kernel's larger interfaces.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    libc::SYS_vmsplice,
    // Of which a user has few, in all processes together.
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_set_mempolicy_home_node,
    // Coming to a processor before the launcher does.
    libc::SYS_sched_setattr,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    STATMOUNT,
    LISTMOUNT,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    // The system.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    // Memory that no limit sees.
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    MAP_SHADOW_STACK,
    // Every way to another process, also where the network has nothing but itself: its buffers are memory that no limit
    // sees. With messages, open files could be sent: while one is under way, nobody holds it.
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    // Becoming somebody else.
    LSM_SET_SELF_ATTR,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
];

#[cfg(target_arch = "x86_64")]
const DENIED_ON_X86_64: &[c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_inotify_init,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
];

//! Where a script runs: what it sees of the file system, and how its launcher is started.

use super::super::wire::{Order, Profile};
use super::request::Request;
use super::{marked, removal, user};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::process::Command;

const NODES: [&str; 5] = ["/dev/null", ZERO, "/dev/full", "/dev/random", "/dev/urandom"];
const ZERO: &str = "/dev/zero";
/// What belongs to the system's programs outside of `/usr`: certificates, fonts, where libraries are, and the time zone.
const SETTINGS: [&str; 9] = [
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/pki/ca-trust/extracted",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/localtime",
];
const LINKS: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// How often a folder is removed that could not be removed at once.
const ATTEMPTS: usize = 600;
const SHARED_MEMORY: u64 = 16 << 20;
/// Holds a script and its encoded form.
const CALLSLIP: u64 = 4 << 20;

/// The programs that build the box.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tools {
    pub(super) launcher: PathBuf,
    pub(super) bwrap: Option<PathBuf>,
}

/// What the launcher starts: a script, or for the probe a program that does nothing.
pub(super) enum Program<'a> {
    Script(&'a Request),
    Nothing,
}

/// A place that is ready to be started.
pub(super) struct Place {
    pub(super) command: Command,
    pub(super) order: Order,
    /// On the host, where there are no namespaces.
    pub(super) folder: Option<Folder>,
}

/// A folder that is removed with all that a script left in it.
pub(super) struct Folder(Option<TempDir>);

impl Folder {
    fn new() -> io::Result<Self> {
        let made = tempfile::Builder::new().prefix("callslip-").tempdir()?;
        // Others may pass, where the script is another user, but not look around.
        std::fs::set_permissions(made.path(), std::os::unix::fs::PermissionsExt::from_mode(0o711))?;
        Ok(Self(Some(made)))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.as_ref().map_or(Path::new(""), TempDir::path)
    }

    /// Where the script begins.
    pub(super) fn work(&self) -> PathBuf {
        self.path().join("box")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let Some(made) = self.0.take().map(TempDir::keep) else { return };
        removal::remove(rustix::fs::CWD, &made);
        if !made.exists() {
            return;
        }
        // The program may have no descriptor left. What is new and empty needs none, the rest another time.
        let _ = std::fs::remove_file(made.join("script.py"));
        for folder in ["box", "tmp", ""] {
            let _ = std::fs::remove_dir(made.join(folder));
        }
        let later = move || {
            for _ in 0..ATTEMPTS {
                if !made.exists() {
                    return;
                }
                std::thread::sleep(std::time::Duration::from_millis(100));
                removal::remove(rustix::fs::CWD, &made);
            }
        };
        let _ = std::thread::Builder::new().name("callslip-removal".to_owned()).spawn(later);
    }
}

impl Place {
    /// In a profile other than `isolated`, its folder is made.
    ///
    /// `users_apart`: in `isolated`, root's too is in a user namespace.
    pub(super) fn new(profile: Profile, tools: &Tools, program: &Program<'_>, users_apart: bool) -> io::Result<Self> {
        match profile {
            Profile::Isolated => isolated(tools, program, users_apart),
            Profile::Restricted | Profile::Unconfined => on_host(profile, tools, program),
        }
    }
}

fn isolated(tools: &Tools, program: &Program<'_>, users_apart: bool) -> io::Result<Place> {
    let bwrap = tools.bwrap.as_ref().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let user = user::stranger();
    // The folder for temporary files would hide what the interpreter needs below it.
    let is_in_tmp = matches!(program, Program::Script(request) if request.needs("/tmp"));
    let temporary = Path::new(if is_in_tmp { "/temporary" } else { "/tmp" });
    let writable: Vec<PathBuf> = vec!["/box".into(), temporary.to_owned(), "/dev/shm".into()];
    let mut readable: Vec<PathBuf> = ["/usr", "/proc", "/dev", "/run/callslip"].map(PathBuf::from).to_vec();
    readable.extend(LINKS.iter().chain(&SETTINGS).map(PathBuf::from));
    let mut arguments: Vec<OsString> = Vec::new();
    let mut add = |words: &[&dyn AsRef<std::ffi::OsStr>]| {
        arguments.extend(words.iter().map(|word| word.as_ref().to_os_string()));
    };
    for word in ["pid", "net", "ipc", "uts", "cgroup-try"] {
        add(&[&format!("--unshare-{word}")]);
    }
    if user.is_none() {
        add(&[&"--unshare-user"]);
    }
    add(&[&"--as-pid-1", &"--die-with-parent", &"--new-session", &"--clearenv", &"--hostname", &"box"]);
    // For the launcher alone, which gives up what it has used: the script gets none.
    add(&[&"--cap-drop", &"ALL"]);
    for word in ["SYS_ADMIN", "SETUID", "SETGID", "SETPCAP", "KILL", "SYS_PTRACE", "CHOWN"] {
        add(&[&"--cap-add", &format!("CAP_{word}")]);
    }
    add(&[&"--ro-bind", &"/usr", &"/usr"]);
    for path in LINKS {
        match std::fs::read_link(path) {
            Ok(target) => add(&[&"--symlink", &target, &path]),
            Err(_) => add(&[&"--ro-bind-try", &path, &path]),
        }
    }
    for path in SETTINGS {
        add(&[&"--ro-bind-try", &path, &path]);
    }
    // The kernel's own arguments say how the host is set up.
    add(&[&"--proc", &"/proc", &"--ro-bind", &"/dev/null", &"/proc/cmdline", &"--dir", &"/dev"]);
    for path in NODES {
        add(&[&"--dev-bind", &path, &path]);
    }
    for (name, target) in [("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")] {
        add(&[&"--symlink", &format!("/proc/self/{target}"), &format!("/dev/{name}")]);
    }
    add(&[&"--perms", &"1777", &"--size", &SHARED_MEMORY.to_string(), &"--tmpfs", &"/dev/shm"]);
    add(&[&"--dir", &"/box", &"--dir", &temporary]);
    add(&[&"--perms", &"0755", &"--size", &CALLSLIP.to_string(), &"--tmpfs", &"/run/callslip"]);
    add(&[&"--ro-bind", &tools.launcher, &"/run/callslip/launcher"]);
    let mut packages = None;
    if let Program::Script(request) = program {
        for prefix in request.prefixes.iter().filter(|prefix| !prefix.starts_with("/usr")) {
            // Folders on the way would be as closed as on the host.
            let mut way: Vec<&Path> = prefix.ancestors().skip(1).filter(|folder| folder.parent().is_some()).collect();
            way.reverse();
            for folder in way {
                add(&[&"--perms", &"0755", &"--dir", &folder]);
            }
            add(&[&"--ro-bind", prefix, prefix]);
            readable.push(prefix.clone());
        }
        if let Some(folder) = &request.packages {
            add(&[&"--ro-bind", folder, &"/run/callslip/packages"]);
            packages = Some(PathBuf::from("/run/callslip/packages"));
        }
    }
    add(&[&"--remount-ro", &"/", &"--", &"/run/callslip/launcher"]);
    // bubblewrap makes a namespace with one user in it; root's scripts are somebody else, so that theirs is made before.
    let mut command = if user.is_some() && users_apart {
        let mut command = Command::new(&tools.launcher);
        command.arg("--in-user-namespace").arg(bwrap);
        command
    } else {
        Command::new(bwrap)
    };
    command.args(arguments);
    let script = Path::new("/run/callslip/script.py");
    let order = order(Profile::Isolated, program, temporary, script, packages.as_deref(), writable, readable, user);
    Ok(Place { command, order, folder: None })
}

fn on_host(profile: Profile, tools: &Tools, program: &Program<'_>) -> io::Result<Place> {
    let folder = Folder::new()?;
    let (work, temporary) = (folder.work(), folder.path().join("tmp"));
    let script = folder.path().join("script.py");
    std::fs::create_dir(&work)?;
    std::fs::create_dir(&temporary)?;
    std::fs::write(&script, "")?;
    let mut readable: Vec<PathBuf> =
        ["/usr", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu", ZERO].map(PathBuf::from).to_vec();
    readable.extend(LINKS.iter().chain(&SETTINGS).map(PathBuf::from));
    readable.retain(|path| path.exists());
    readable.push(script.clone());
    let mut packages = None;
    if let Program::Script(request) = program {
        readable.extend(request.prefixes.iter().cloned());
        readable.extend(request.packages.clone());
        packages.clone_from(&request.packages);
    }
    let user = (profile == Profile::Restricted).then(user::stranger).flatten();
    let writable = vec![work, temporary.clone()];
    let order = order(profile, program, &temporary, &script, packages.as_deref(), writable, readable, user);
    let mut command = Command::new(&tools.launcher);
    command.arg(folder.path());
    Ok(Place { command, order, folder: Some(folder) })
}

#[expect(clippy::too_many_arguments, reason = "what the two kinds of places differ in")]
fn order(
    profile: Profile,
    program: &Program<'_>,
    temporary: &Path,
    script: &Path,
    packages: Option<&Path>,
    writable: Vec<PathBuf>,
    readable: Vec<PathBuf>,
    user: Option<u32>,
) -> Order {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let home = writable.first().map(|folder| text(folder)).unwrap_or_default();
    let mut order = Order {
        profile,
        command: vec!["/usr/bin/true".to_owned()],
        environment: vec![
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME".to_owned(), home),
            ("TMPDIR".to_owned(), text(temporary)),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ("USER".to_owned(), "box".to_owned()),
        ],
        script: None,
        writable,
        readable,
        // Memory that is mapped from this one, writable, would be nobody's.
        devices: NODES.iter().filter(|path| **path != ZERO).map(PathBuf::from).collect(),
        user,
        bounds: super::probe::BOUNDS,
        mark: marked::new(),
        namespaces: namespaces(),
    };
    if let Program::Script(request) = program {
        let mode = if request.interactive { "interactive" } else { "silent" };
        order.command = vec![text(&request.python)];
        // Compiled at each start: what a script doesn't need is left out.
        let ask = if request.interactive { include_str!("bootstrap/ask.py") } else { "" };
        let begin = format!("{ask}{}", include_str!("bootstrap/begin.py"));
        order.command.extend(["-I", "-S", "-B", "-X", "utf8", "-c"].map(str::to_owned));
        order.command.push(begin);
        order.command.extend([text(script), packages.map(text).unwrap_or_default(), mode.to_owned()]);
        order.script = Some((script.to_owned(), request.code.clone()));
        order.bounds = request.limits.bounds();
    }
    order
}

/// The program's own, so that the launcher can tell whether the script has others.
fn namespaces() -> Vec<(String, String)> {
    let kinds = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"];
    let own = |kind: &str| std::fs::read_link(format!("/proc/self/ns/{kind}"));
    kinds
        .into_iter()
        .filter_map(|kind| Some((kind.to_owned(), own(kind).ok()?.to_string_lossy().into_owned())))
        .collect()
}

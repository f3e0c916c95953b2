//! Where a script runs: what it sees of the file system, and how its launcher is started.

use super::super::wire::{LaunchRequest, Profile};
use super::control_group::ControlGroup;
use super::request::Request;
use super::{marked_processes, removal, script_user};
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
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
/// The folder of the files that a script is given, where it starts.
pub(super) const INPUT: &str = "in";
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

/// Everything that is needed to start a launcher.
pub(super) struct LaunchSpec {
    pub(super) command: Command,
    pub(super) launch: LaunchRequest,
    /// On the host, where there are no namespaces.
    pub(super) folder: Option<Folder>,
    /// By which the kernel keeps its limits, where one may be made.
    pub(super) group: Option<ControlGroup>,
}

/// A folder that is removed with all that a script left in it.
pub(super) struct Folder(Option<TempDir>);

impl Folder {
    fn new() -> io::Result<Self> {
        // Nobody else may pass: where the script is another user, the launcher gives the folder to that one.
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        let made = tempfile::Builder::new().prefix("callslip-").permissions(private).tempdir()?;
        Ok(Self(Some(made)))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.as_ref().map_or(Path::new(""), TempDir::path)
    }

    /// A copy of the files that the script is given, outside of what it may write to.
    pub(super) fn files(&self) -> PathBuf {
        self.path().join(INPUT)
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

impl LaunchSpec {
    /// In a profile other than `isolated`, its folder is made.
    ///
    /// `users_apart`: in `isolated`, root's too is in a user namespace.
    pub(super) fn new(profile: Profile, tools: &Tools, program: &Program<'_>, users_apart: bool) -> io::Result<Self> {
        let mut spec = match profile {
            Profile::Isolated => isolated(tools, program, users_apart),
            Profile::Restricted | Profile::Unconfined => on_host(profile, tools, program),
        }?;
        spec.group = ControlGroup::new(&spec.launch.bounds);
        spec.launch.group = spec.group.is_some();
        Ok(spec)
    }
}

fn isolated(tools: &Tools, program: &Program<'_>, users_apart: bool) -> io::Result<LaunchSpec> {
    let bwrap = tools.bwrap.as_ref().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let user = script_user::stranger();
    // The folder for temporary files would hide what the interpreter needs below it.
    let is_in_tmp = matches!(program, Program::Script(request) if request.needs("/tmp"));
    let temporary = Path::new(if is_in_tmp { "/temporary" } else { "/tmp" });
    let mut readable: Vec<PathBuf> = ["/usr", "/proc", "/dev", "/run/callslip"].map(PathBuf::from).to_vec();
    readable.extend(LINKS.iter().chain(&SETTINGS).map(PathBuf::from));
    let mut arguments = Arguments::default();
    arguments.separate(user.is_none());
    arguments.mount_system();
    arguments.mount_folders(temporary, &tools.launcher);
    let (mut packages, mut files) = (None, None);
    if let Program::Script(request) = program {
        let prefixes = request.prefixes.iter().filter(|prefix| !prefix.starts_with("/usr"));
        readable.extend(prefixes.clone().cloned());
        prefixes.for_each(|prefix| arguments.mount_prefix(prefix));
        if let Some(folder) = &request.packages {
            arguments.add(&[&"--ro-bind", folder, &"/run/callslip/packages"]);
            packages = Some(PathBuf::from("/run/callslip/packages"));
        }
        if let Some(folder) = &request.files {
            arguments.add(&[&"--ro-bind", folder, &"/run/callslip/files"]);
            files = Some(PathBuf::from("/run/callslip/files"));
        }
    }
    arguments.add(&[&"--remount-ro", &"/", &"--", &"/run/callslip/launcher"]);
    // bubblewrap makes a namespace with one user in it; root's scripts are somebody else, so that theirs is made before.
    let mut command = if user.is_some() && users_apart {
        let mut command = Command::new(&tools.launcher);
        command.arg("--in-user-namespace").arg(bwrap);
        command
    } else {
        Command::new(bwrap)
    };
    command.args(arguments.0);
    let paths = Paths {
        script: "/run/callslip/script.py".into(),
        packages,
        files,
        writable: vec!["/box".into(), temporary.to_owned(), "/dev/shm".into()],
        temporary: temporary.to_owned(),
        readable,
    };
    Ok(LaunchSpec { command, launch: launch(Profile::Isolated, program, paths, user), folder: None, group: None })
}

/// The arguments of bubblewrap.
#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn add(&mut self, words: &[&dyn AsRef<OsStr>]) {
        self.0.extend(words.iter().map(|word| word.as_ref().to_os_string()));
    }

    fn separate(&mut self, users_too: bool) {
        for word in ["pid", "net", "ipc", "uts", "cgroup-try"] {
            self.add(&[&format!("--unshare-{word}")]);
        }
        if users_too {
            self.add(&[&"--unshare-user"]);
        }
        self.add(&[&"--as-pid-1", &"--die-with-parent", &"--new-session", &"--clearenv", &"--hostname", &"box"]);
        // For the launcher alone, which gives up what it has used: the script gets none.
        self.add(&[&"--cap-drop", &"ALL"]);
        for word in ["SYS_ADMIN", "SETUID", "SETGID", "SETPCAP", "KILL", "SYS_PTRACE", "CHOWN"] {
            self.add(&[&"--cap-add", &format!("CAP_{word}")]);
        }
    }

    fn mount_system(&mut self) {
        self.add(&[&"--ro-bind", &"/usr", &"/usr"]);
        for path in LINKS {
            match std::fs::read_link(path) {
                Ok(target) => self.add(&[&"--symlink", &target, &path]),
                Err(_) => self.add(&[&"--ro-bind-try", &path, &path]),
            }
        }
        for path in SETTINGS {
            self.add(&[&"--ro-bind-try", &path, &path]);
        }
        // The kernel's own arguments say how the host is set up.
        self.add(&[&"--proc", &"/proc", &"--ro-bind", &"/dev/null", &"/proc/cmdline", &"--dir", &"/dev"]);
        for path in NODES {
            self.add(&[&"--dev-bind", &path, &path]);
        }
        for (name, target) in [("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")] {
            self.add(&[&"--symlink", &format!("/proc/self/{target}"), &format!("/dev/{name}")]);
        }
    }

    fn mount_folders(&mut self, temporary: &Path, launcher: &Path) {
        self.add(&[&"--perms", &"1777", &"--size", &SHARED_MEMORY.to_string(), &"--tmpfs", &"/dev/shm"]);
        self.add(&[&"--dir", &"/box", &"--dir", &temporary]);
        self.add(&[&"--perms", &"0755", &"--size", &CALLSLIP.to_string(), &"--tmpfs", &"/run/callslip"]);
        self.add(&[&"--ro-bind", &launcher, &"/run/callslip/launcher"]);
    }

    /// A folder that the interpreter needs.
    fn mount_prefix(&mut self, prefix: &Path) {
        // Folders on the way would be as closed as on the host.
        let mut way: Vec<&Path> = prefix.ancestors().skip(1).filter(|folder| folder.parent().is_some()).collect();
        way.reverse();
        for folder in way {
            self.add(&[&"--perms", &"0755", &"--dir", &folder]);
        }
        self.add(&[&"--ro-bind", &prefix, &prefix]);
    }
}

fn on_host(profile: Profile, tools: &Tools, program: &Program<'_>) -> io::Result<LaunchSpec> {
    let folder = Folder::new()?;
    let (work, temporary) = (folder.work(), folder.path().join("tmp"));
    let script = folder.path().join("script.py");
    for made in [&work, &temporary] {
        DirBuilder::new().mode(0o700).create(made)?;
    }
    File::options().write(true).create_new(true).mode(0o600).open(&script)?;
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
        if request.files.is_some() {
            // Filled with a copy later: nothing that this script does to it reaches another one.
            DirBuilder::new().mode(0o755).create(folder.files())?;
            std::os::unix::fs::symlink(folder.files(), work.join(INPUT))?;
            readable.push(folder.files());
        }
    }
    let user = (profile == Profile::Restricted).then(script_user::stranger).flatten();
    let paths = Paths { script, packages, files: None, writable: vec![work, temporary.clone()], temporary, readable };
    let mut command = Command::new(&tools.launcher);
    command.arg(folder.path());
    Ok(LaunchSpec { command, launch: launch(profile, program, paths, user), folder: Some(folder), group: None })
}

/// The paths of a script, as it sees them.
struct Paths {
    script: PathBuf,
    packages: Option<PathBuf>,
    /// Files to be mounted.
    files: Option<PathBuf>,
    temporary: PathBuf,
    /// The folder that it starts in, then others.
    writable: Vec<PathBuf>,
    readable: Vec<PathBuf>,
}

fn launch(profile: Profile, program: &Program<'_>, paths: Paths, user: Option<u32>) -> LaunchRequest {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let home = paths.writable.first().map(|folder| text(folder)).unwrap_or_default();
    let mut launch = LaunchRequest {
        profile,
        command: vec!["/usr/bin/true".to_owned()],
        environment: vec![
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME".to_owned(), home),
            ("TMPDIR".to_owned(), text(&paths.temporary)),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ("USER".to_owned(), "box".to_owned()),
        ],
        script: None,
        writable: paths.writable,
        readable: paths.readable,
        files: paths.files,
        // Memory that is mapped from this one, writable, would be nobody's.
        devices: NODES.iter().filter(|path| **path != ZERO).map(PathBuf::from).collect(),
        user,
        bounds: super::probe::BOUNDS,
        group: false,
        mark: marked_processes::new(),
        namespaces: namespaces(),
    };
    if let Program::Script(request) = program {
        let mode = if request.interactive { "interactive" } else { "silent" };
        launch.command = vec![text(&request.python)];
        // Compiled at each start: what a script doesn't need is left out.
        let ask = if request.interactive { include_str!("bootstrap/ask.py") } else { "" };
        let begin = format!("{ask}{}", include_str!("bootstrap/begin.py"));
        launch.command.extend(["-I", "-S", "-B", "-X", "utf8", "-c"].map(str::to_owned));
        launch.command.push(begin);
        let packages = paths.packages.as_deref().map(text).unwrap_or_default();
        launch.command.extend([text(&paths.script), packages, mode.to_owned()]);
        launch.script = Some((paths.script, request.code.clone()));
        launch.bounds = request.limits.bounds();
    }
    launch
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

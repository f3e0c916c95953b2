//! How this developer reaches an index: the installer runs in an empty environment and reads no file of settings, so
//! that this is all it knows.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What the installer is given of the program's environment as it is.
const PASSED_ON: [&str; 12] = [
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
];

/// Variables that name the index; the first one that is set counts.
const INDEX: [&str; 3] = ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"];

/// Variables that name the certificates if `SSL_CERT_FILE` does not.
const CERTIFICATES: [&str; 2] = ["PIP_CERT", "REQUESTS_CA_BUNDLE"];

/// The index and the way to it.
pub(super) struct Settings {
    index: Option<String>,
    variables: Vec<(String, OsString)>,
}

impl Settings {
    /// What holds for this program, unless it names the index itself.
    pub(super) fn of(index: Option<&str>, python: &Path) -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let files = pip_files(&variable, python).into_iter().filter_map(|file| std::fs::read_to_string(file).ok());
        Self::read(index, &variable, &files.collect::<Vec<_>>())
    }

    fn read(index: Option<&str>, variable: &dyn Fn(&str) -> Option<OsString>, files: &[String]) -> Self {
        let in_files = |key: &str| files.iter().find_map(|file| pip_setting(file, key));
        let text = |name: &&str| variable(name).and_then(|value| value.into_string().ok());
        let index = index.map(str::to_owned).or_else(|| INDEX.iter().find_map(text)).or_else(|| in_files("index-url"));
        let mut variables: Vec<(String, OsString)> =
            PASSED_ON.iter().filter_map(|name| Some(((*name).to_owned(), variable(name)?))).collect();
        if variable("SSL_CERT_FILE").is_none() {
            let file = CERTIFICATES.iter().find_map(|name| variable(name)).or_else(|| in_files("cert").map(Into::into));
            variables.extend(file.map(|file| ("SSL_CERT_FILE".to_owned(), file)));
        }
        Self { index, variables }
    }

    /// The installer's variables. The index is among them: arguments can be read by every user of the machine.
    pub(super) fn variables(&self) -> impl Iterator<Item = (String, OsString)> {
        let index = self.index.iter().map(|index| ("UV_DEFAULT_INDEX".to_owned(), OsString::from(index)));
        self.variables.iter().cloned().chain(index)
    }

    /// The index without what opens it.
    pub(super) fn index_shown(&self) -> Option<&str> {
        let index = self.index.as_deref()?;
        let Some((_, rest)) = index.split_once("://") else { return Some(index) };
        let host = rest.split('/').next().unwrap_or_default();
        Some(host.rfind('@').and_then(|at| rest.get(at + 1..)).unwrap_or(rest))
    }

    /// Takes out of a text what opens index and proxies.
    pub(super) fn redact(&self, text: &str) -> String {
        let addresses = self
            .variables()
            .filter(|(name, _)| name.to_ascii_lowercase().ends_with("proxy") || name == "UV_DEFAULT_INDEX");
        let mut shown = text.to_owned();
        for (_, address) in addresses {
            for secret in secrets(&address.to_string_lossy()) {
                shown = shown.replace(&secret, "***");
            }
        }
        shown
    }
}

/// The password of an address, or the name where that is all there is: as written and as meant.
fn secrets(address: &str) -> Vec<String> {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    let Some((opens, _)) = host.rsplit_once('@') else { return Vec::new() };
    let secret = match opens.split_once(':') {
        Some((name, "")) => name,
        Some((_, password)) => password,
        None => opens,
    };
    let meant = percent_encoding::percent_decode_str(secret).decode_utf8_lossy().into_owned();
    [secret.to_owned(), meant].into_iter().filter(|secret| !secret.is_empty()).collect()
}

/// The files that pip reads, the one that counts most first.
fn pip_files(variable: &dyn Fn(&str) -> Option<OsString>, python: &Path) -> Vec<PathBuf> {
    let folder = |name: &str| variable(name).map(PathBuf::from);
    let named = folder("PIP_CONFIG_FILE");
    if named.as_deref() == Some(Path::new("/dev/null")) {
        return Vec::new();
    }
    let home = folder("HOME");
    let settings = folder("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
    let environment = python.parent().and_then(Path::parent).map(|prefix| prefix.join("pip.conf"));
    let of_home = |path: &str| home.as_ref().map(|home| home.join(path));
    [
        named,
        environment,
        settings.map(|settings| settings.join("pip/pip.conf")),
        of_home("Library/Application Support/pip/pip.conf"),
        of_home(".pip/pip.conf"),
        Some(PathBuf::from("/etc/xdg/pip/pip.conf")),
        Some(PathBuf::from("/etc/pip.conf")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A setting of a file of pip's, for installing before that for all.
fn pip_setting(file: &str, key: &str) -> Option<String> {
    let in_section = |wanted: &str| {
        let mut section = "";
        let mut found = None;
        for line in file.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = name;
            } else if section == wanted
                && let Some((name, value)) = line.split_once(['=', ':'])
                && name.trim().replace('_', "-").eq_ignore_ascii_case(key)
                && !line.starts_with(['#', ';'])
            {
                found = Some(value.trim().to_owned()).filter(|value| !value.is_empty());
            }
        }
        found
    };
    in_section("install").or_else(|| in_section("global"))
}

#[cfg(test)]
mod tests {
    use super::{Settings, pip_setting};
    use std::ffi::OsString;

    fn settings(index: Option<&str>, variables: &[(&str, &str)], file: &str) -> Settings {
        let variable =
            |name: &str| variables.iter().find(|(given, _)| *given == name).map(|(_, value)| OsString::from(value));
        Settings::read(index, &variable, &[file.to_owned()])
    }

    fn arguments_of(settings: &Settings) -> Vec<String> {
        settings.variables().map(|(name, value)| format!("{name}={}", value.display())).collect()
    }

    #[test]
    fn the_index_is_the_one_that_is_named_nearest() {
        let file = "[global]\nindex_url = https://file.example/simple\n";
        let all = [("PIP_INDEX_URL", "https://pip.example"), ("UV_INDEX_URL", "https://uv.example"), ("SECRET", "x")];
        assert_eq!(
            arguments_of(&settings(Some("https://own.example"), &all, file)),
            ["UV_DEFAULT_INDEX=https://own.example"]
        );
        assert_eq!(arguments_of(&settings(None, &all, file)), ["UV_DEFAULT_INDEX=https://uv.example"]);
        assert_eq!(arguments_of(&settings(None, &[], file)), ["UV_DEFAULT_INDEX=https://file.example/simple"]);
        assert_eq!(arguments_of(&settings(None, &[("HOME", "/root")], "")), [""; 0]);
    }

    #[test]
    fn certificates_of_pip_are_those_of_the_installer() {
        let file = "[install]\ncert = /file.pem";
        assert_eq!(arguments_of(&settings(None, &[], file)), ["SSL_CERT_FILE=/file.pem"]);
        assert_eq!(arguments_of(&settings(None, &[("PIP_CERT", "/pip.pem")], file)), ["SSL_CERT_FILE=/pip.pem"]);
        let own = [("PIP_CERT", "/pip.pem"), ("SSL_CERT_FILE", "/own.pem")];
        assert_eq!(arguments_of(&settings(None, &own, file)), ["SSL_CERT_FILE=/own.pem"]);
    }

    #[test]
    fn files_of_pip_are_read_as_pip_reads_them() {
        let file =
            "index-url = none\n[global]\n# index-url = x\nindex-url: a\nextra-index-url = b\n[install]\nindex-url=c\n";
        assert_eq!(pip_setting(file, "index-url").as_deref(), Some("c"));
        assert_eq!(pip_setting("[global]\nindex-url =\n", "index-url"), None);
    }

    #[test]
    fn what_opens_an_index_is_shown_nowhere() {
        let proxy = [("HTTPS_PROXY", "http://token@proxy.example:3128")];
        let settings = settings(Some("https://ann:p%40ss@own.example/simple"), &proxy, "");
        assert_eq!(settings.index_shown(), Some("own.example/simple"));
        let said = settings.redact("https://ann:p%40ss@own.example p@ss token x");
        assert_eq!(said, "https://ann:***@own.example *** *** x");
    }
}

//! What a traceback means where scripts have no network, nobody to ask and only the packages that they declare.

use super::{Script, stdlib};

/// Modules that other packages than those of their name bring.
const PACKAGES: [(&str, &str); 40] = [
    ("Bio", "biopython"),
    ("Crypto", "pycryptodome"),
    ("Levenshtein", "levenshtein"),
    ("MySQLdb", "mysqlclient"),
    ("OpenSSL", "pyopenssl"),
    ("PIL", "pillow"),
    ("PyPDF2", "pypdf2"),
    ("attr", "attrs"),
    ("bs4", "beautifulsoup4"),
    ("bson", "pymongo"),
    ("cairosvg", "cairosvg"),
    ("cv2", "opencv-python-headless"),
    ("dateutil", "python-dateutil"),
    ("discord", "discord.py"),
    ("docx", "python-docx"),
    ("dotenv", "python-dotenv"),
    ("faiss", "faiss-cpu"),
    ("fitz", "pymupdf"),
    ("git", "gitpython"),
    ("github", "pygithub"),
    ("jose", "python-jose"),
    ("jwt", "pyjwt"),
    ("magic", "python-magic"),
    ("mpl_toolkits", "matplotlib"),
    ("nacl", "pynacl"),
    ("osgeo", "gdal"),
    ("pkg_resources", "setuptools"),
    ("pptx", "python-pptx"),
    ("psycopg2", "psycopg2-binary"),
    ("pylab", "matplotlib"),
    ("serial", "pyserial"),
    ("skimage", "scikit-image"),
    ("sklearn", "scikit-learn"),
    ("slugify", "python-slugify"),
    ("telegram", "python-telegram-bot"),
    ("usb", "pyusb"),
    ("websocket", "websocket-client"),
    ("wx", "wxpython"),
    ("yaml", "pyyaml"),
    ("zmq", "pyzmq"),
];

/// How a blocked network reads. The resolver, the kernel and the usual clients each have words of their own.
const NETWORK: [&str; 10] = [
    "Name or service not known",
    "Temporary failure in name resolution",
    "nodename nor servname provided",
    "No address associated with hostname",
    "Network is unreachable",
    "Network unreachable",
    "No route to host",
    "NameResolutionError",
    "Failed to resolve",
    "Could not resolve host",
];

/// Hints for the model from the end of what a script wrote to stderr. `interactive` is whether its questions were
/// answered, `network` whether it had one.
pub fn hints(stderr: &str, script: &Script, interactive: bool, network: bool) -> Vec<String> {
    let mut hints = Vec::new();
    // The last error is the one that ended the script.
    let module = stderr.lines().rev().find_map(|line| missing(line.trim()));
    hints.extend(module.map(|module| for_module(module, script)));
    if !network && is_network(stderr) {
        hints.push(
            "scripts have no network here: work with what the code holds, or fetch with another tool first".to_owned(),
        );
    }
    if !interactive && stderr.lines().rev().take(8).any(|line| line.trim() == "EOFError: EOF when reading a line") {
        hints.push(
            "nobody answers input() here: call again with \"interactive\": true, or put the values into the code"
                .to_owned(),
        );
    }
    hints
}

/// The module that this line of a traceback misses.
fn missing(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("No module named ")?;
    let named = rest.trim_matches(|letter| matches!(letter, '\'' | '"' | ';' | ' '));
    let module = named.split(['.', '\'', ';', ' ']).next()?;
    let is_name = module.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    (is_name && (1..=80).contains(&module.len())).then_some(module)
}

fn for_module(module: &str, script: &Script) -> String {
    if matches!(module, "pip" | "uv" | "ensurepip") {
        return "a script can't install packages: write # dependencies = [\"name\"] as its first line instead"
            .to_owned();
    }
    if stdlib::holds(module.trim_start_matches('_')) {
        return format!("{module} is not available in this Python: do without it");
    }
    let package = match PACKAGES.iter().find(|(name, _)| *name == module) {
        Some((_, package)) => (*package).to_owned(),
        None => module.replace('_', "-").to_lowercase(),
    };
    let normalised = package.replace('.', "-");
    if script.names.contains(&normalised) {
        return format!("{package} is declared, but has no module {module}: check how it is imported");
    }
    if script.dependencies.is_empty() {
        return format!(
            "{module} is imported but not declared: write # dependencies = [\"{package}\"] as the first line"
        );
    }
    format!("{module} is imported but not declared: add \"{package}\" to the script's dependencies")
}

fn is_network(stderr: &str) -> bool {
    if NETWORK.iter().any(|words| stderr.contains(words)) {
        return true;
    }
    // The same words as for a file: what was called stands in the lines before.
    let mut since_socket = usize::MAX;
    stderr.lines().any(|line| {
        let opens = ["socket.py", "socket.socket(", ".connect("].iter().any(|call| line.contains(call));
        since_socket = if opens { 0 } else { since_socket.saturating_add(1) };
        let denied =
            line.contains("[Errno 1] Operation not permitted") || line.contains("[Errno 13] Permission denied");
        denied && since_socket <= 4
    })
}

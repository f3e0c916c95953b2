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

/// Packages that are known well enough to be named as what a module of their name is; `_` for `-`. An invented name may
/// be somebody's trap, and a script's own file is no package.
const WELL_KNOWN: &str = "aiohttp altair anyio arrow astropy attrs biopython bokeh boto3 cachetools cattrs celery \
    certifi chardet click cryptography cycler cython dask django duckdb faker fastapi feedparser filelock flask folium \
    fsspec geopandas gensim gmpy2 graphviz gspread h5py html5lib httpx humanize hypothesis idna imageio jax jinja2 \
    joblib jsonschema keras lark lightgbm llvmlite loguru lxml markdown markupsafe matplotlib mistune moviepy mpmath \
    msgpack multidict mypy natsort networkx nltk numba numexpr numpy openai openpyxl orjson packaging pandas paramiko \
    patsy peewee pendulum pint plotly polars pooch prettytable psutil pyarrow pydantic pygame pygments pymongo \
    pymysql pyparsing pypdf pyproj pytest pytz rapidfuzz redis regex reportlab requests rich ruff scipy scrapy seaborn \
    selenium shapely simplejson six sklearn soupsieve spacy sqlalchemy starlette statsmodels streamlit sympy tabulate \
    tenacity tensorflow termcolor textblob tiktoken tinycss2 tokenizers toml tomli torch torchvision tornado tqdm \
    transformers trio typer tzdata ujson unidecode urllib3 uvicorn websockets wordcloud xarray xgboost xlrd xlsxwriter \
    xmltodict yarl zstandard";

/// How a limit that is reached reads, and which it is.
const LIMITS: [(&str, &str); 6] = [
    ("MemoryError", "the script needs more memory than it may have (memory_bytes): hold less of it at once"),
    (
        "[Errno 28]",
        "the script's files take all the room that they may (disk_bytes, disk_files): write less, or remove some",
    ),
    ("[Errno 27]", "a file is larger than a script's files may be (disk_bytes): write less"),
    ("[Errno 11]", "the script has as many processes and threads as it may (processes): start fewer at once"),
    (
        "can't start new thread",
        "the script has as many processes and threads as it may (processes): start fewer at once",
    ),
    ("[Errno 24]", "the script has as many files open as it may (files): close some"),
];

/// The lines at the end in which the error stands that ended a script.
const LAST: usize = 8;

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

/// Hints for the model from the error at the end of what a failed script wrote to stderr. `interactive` is whether its
/// questions were answered, `network` whether it had one.
pub fn hints(stderr: &str, script: &Script, interactive: bool, network: bool) -> Vec<String> {
    let mut hints = Vec::new();
    let last = last_traceback(stderr);
    // What is said of the error itself stands at the beginning of a line; its place in the code does not.
    let errors: Vec<&str> =
        last.iter().rev().take(LAST).filter(|line| is_of_error(line)).map(|line| line.trim()).collect();
    let module = errors.iter().find_map(|line| missing(line));
    hints.extend(module.map(|module| for_module(module, script)));
    if !network && is_network(&errors, &last) {
        hints.push(
            "scripts have no network here: work with what the code holds, or fetch with another tool first".to_owned(),
        );
    }
    let limit = errors.iter().find_map(|line| LIMITS.iter().find(|(words, _)| reads(line, words)));
    hints.extend(limit.map(|(_, hint)| (*hint).to_owned()));
    if !interactive && errors.contains(&"EOFError: EOF when reading a line") {
        hints.push(
            "nobody answers input() here: call again with \"interactive\": true, or put the values into the code"
                .to_owned(),
        );
    }
    hints
}

/// The lines of the last traceback; all of them where there is none.
fn last_traceback(stderr: &str) -> Vec<&str> {
    let lines: Vec<&str> = stderr.lines().collect();
    let begin = lines.iter().rposition(|line| line.contains("Traceback (most recent call last)")).unwrap_or(0);
    lines.get(begin..).unwrap_or_default().to_vec()
}

/// Whether a line is no place in the code; in a group of errors they stand behind bars.
fn is_of_error(line: &str) -> bool {
    !line.is_empty() && (line.contains("  | ") || !line.starts_with(char::is_whitespace))
}

/// Whether this is the error, and not only a message that holds its words.
fn reads(line: &str, words: &str) -> bool {
    let (kind, message) = line.split_once(": ").unwrap_or((line, ""));
    if words == "MemoryError" {
        return kind == words || kind.ends_with(".MemoryError") || kind.ends_with("ArrayMemoryError");
    }
    (kind.ends_with("Error") || kind.ends_with("Exception")) && message.starts_with(words)
}

/// The module that this line of a traceback misses.
fn missing(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("No module named ")?;
    // The interpreter says so too, of what `-m` names.
    let is_error = ["ModuleNotFoundError: ", "ImportError: "].iter().any(|kind| before.ends_with(kind));
    if !is_error && !before.trim_end_matches(": ").rsplit('/').next().is_some_and(|name| name.starts_with("python")) {
        return None;
    }
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
    let known = PACKAGES.iter().find(|(name, _)| *name == module);
    let is_known = known.is_some() || WELL_KNOWN.split_ascii_whitespace().any(|name| name == module);
    let package = known.map_or_else(|| module.replace('_', "-").to_lowercase(), |(_, package)| (*package).to_owned());
    let normalised = package.replace('.', "-");
    if let Some(place) = script.names.iter().position(|name| *name == normalised) {
        let marker = script.dependencies.get(place).and_then(|text| text.split_once(';'));
        return match marker {
            Some((_, marker)) => {
                let marker = marker.trim();
                format!("{package} is declared only for {marker}, which may not hold here: declare it without that")
            }
            None => format!("{package} is declared, but has no module {module}: check how it is imported"),
        };
    }
    let how = if script.dependencies.is_empty() {
        format!("write # dependencies = [\"{package}\"] as the first line")
    } else {
        format!("add \"{package}\" to the script's dependencies")
    };
    if is_known {
        format!("{module} is imported but not declared: {how}")
    } else {
        format!("{module} is not installed: if it is a package, declare it: {how}")
    }
}

fn is_network(errors: &[&str], last: &[&str]) -> bool {
    if NETWORK.iter().any(|words| errors.iter().any(|line| line.contains(words))) {
        return true;
    }
    // The same words as for a file: what was called stands in the lines before.
    let mut since_socket = usize::MAX;
    last.iter().any(|line| {
        let opens = ["socket.py", "socket.socket(", ".connect("].iter().any(|call| line.contains(call));
        since_socket = if opens { 0 } else { since_socket.saturating_add(1) };
        let denied =
            line.contains("[Errno 1] Operation not permitted") || line.contains("[Errno 13] Permission denied");
        denied && since_socket <= 4
    })
}

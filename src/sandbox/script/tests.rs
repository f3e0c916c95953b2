use super::{Script, hints};

fn script(code: &str) -> Script {
    Script::read(code).unwrap()
}

fn failed(code: &str, stderr: &str) -> Vec<String> {
    hints(stderr, &script(code), false, false)
}

#[test]
fn the_python_asked_for_is_compared_with_the_one_there_is() {
    let wants = script("# requires-python = \">=3.11,<3.14\"\nprint(1)");
    assert_eq!(wants.check_python("3.13.1"), Ok(()));
    assert_eq!(script("print(1)").check_python("3.9"), Ok(()));
    let refused = wants.check_python("3.14.0").unwrap_err();
    assert_eq!(refused.code.as_str(), "dependency_rejected");
    assert_eq!(
        refused.message,
        "the script requires Python >=3.11, <3.14, this one is 3.14.0: write it for Python 3.14.0"
    );
}

#[test]
fn too_much_code_is_refused() {
    let code = "x = 1\n".repeat(200_000);
    let refused = Script::read(&code).unwrap_err();
    assert_eq!(
        (refused.code.as_str(), refused.message.as_str()),
        ("bad_code", "expected at most 1048576 bytes of code: got 1200000: keep data out of the code")
    );
}

#[test]
fn a_missing_module_is_named_with_its_package() {
    let error = |module: &str| format!("Traceback:\nModuleNotFoundError: No module named '{module}'\n");
    let cases = [
        (
            "import rich",
            "rich.table",
            "rich is imported but not declared: write # dependencies = [\"rich\"] as the first line",
        ),
        (
            "import cv2",
            "cv2",
            "cv2 is imported but not declared: write # dependencies = [\"opencv-python-headless\"] as the first line",
        ),
        (
            "# dependencies = [\"six\"]\nimport yaml",
            "yaml",
            "yaml is imported but not declared: add \"pyyaml\" to the script's dependencies",
        ),
        (
            "# dependencies = [\"Pillow\"]\nimport PIL.nothing",
            "PIL.nothing",
            "pillow is declared, but has no module PIL: check how it is imported",
        ),
        (
            "# dependencies = [\"six; python_version < '3'\"]\nimport six",
            "six",
            "six is declared only for python_full_version < '3', which may not hold here: declare it without that",
        ),
        (
            "import helper",
            "helper",
            "helper is not installed: if it is a package, declare it: write # dependencies = [\"helper\"] as the first \
             line",
        ),
        ("import tkinter", "_tkinter", "_tkinter is not available in this Python: do without it"),
        (
            "import pip",
            "pip",
            "a script can't install packages: write # dependencies = [\"name\"] as its first line instead",
        ),
    ];
    for (code, module, hint) in cases {
        assert_eq!(failed(code, &error(module)), [hint]);
    }
    assert_eq!(failed("x", "/usr/bin/python3: No module named pip").len(), 1);
    for odd in ["</tool>", "a\u{1b}[2J", "", "é"] {
        assert!(failed("x", &error(odd)).is_empty(), "{odd:?}");
    }
}

#[test]
fn a_blocked_network_is_told_from_a_blocked_file() {
    let hint = "scripts have no network here: work with what the code holds, or fetch with another tool first";
    for seen in [
        "socket.gaierror: [Errno -2] Name or service not known",
        "OSError: [Errno 101] Network is unreachable",
        "  File \"/usr/lib/python3.11/socket.py\", line 232, in __init__\n    _socket.socket.__init__(self, family)\n\
         PermissionError: [Errno 1] Operation not permitted",
    ] {
        assert_eq!(failed("x", seen), [hint], "{seen}");
        assert!(hints(seen, &script("x"), false, true).is_empty());
    }
    assert!(failed("x", "PermissionError: [Errno 13] Permission denied: '/etc/shadow'").is_empty());
}

#[test]
fn a_question_that_nobody_answers_asks_for_an_interactive_call() {
    let seen = "Traceback (most recent call last):\nEOFError: EOF when reading a line\n";
    assert_eq!(
        failed("input()", seen),
        ["nobody answers input() here: call again with \"interactive\": true, or put the values into the code"]
    );
    assert!(hints(seen, &script("input()"), true, false).is_empty());
}

#[test]
fn words_in_a_message_are_no_error_of_that_kind() {
    for seen in [
        "Traceback (most recent call last):\n  File \"script.py\", line 1\nValueError: No module named os\n",
        "Traceback (most recent call last):\nModuleNotFoundError: No module named 'rich'\n\nDuring handling of the \
         above exception, another exception occurred:\n\nTraceback (most recent call last):\nKeyError: 'x'\n",
        "ModuleNotFoundError: No module named 'rich'\n1\n2\n3\n4\n5\n6\n7\n8\n",
        "ValueError: MemoryError\n",
        "ValueError: about [Errno 28]\n",
    ] {
        assert!(failed("x", seen).is_empty(), "{seen}");
    }
}

#[test]
fn a_limit_that_is_reached_is_named() {
    for (seen, limit) in [
        ("MemoryError", "memory_bytes"),
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8 GiB", "memory_bytes"),
        ("OSError: [Errno 28] No space left on device: 'a'", "disk_bytes, disk_files"),
        ("OSError: [Errno 27] File too large", "disk_bytes"),
        ("BlockingIOError: [Errno 11] Resource temporarily unavailable", "processes"),
        ("RuntimeError: can't start new thread", "processes"),
        ("OSError: [Errno 24] Too many open files", "files"),
    ] {
        let hints = failed("x", &format!("Traceback (most recent call last):\n  File \"script.py\", line 1\n{seen}\n"));
        assert_eq!(hints.len(), 1, "{seen}");
        assert!(hints.iter().all(|hint| hint.contains(&format!("({limit})"))), "{hints:?}");
    }
}

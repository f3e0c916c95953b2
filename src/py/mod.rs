//! The border to Python: the only place that names pyo3. Classes are frozen over a lock, nothing of Python is touched
//! while a lock is held, nobody waits for a lock while attached to Python, and Rust keeps no Python object but the texts of an outcome and what a reader's snapshots show.

mod command;
mod decision;
mod envelope;
mod error;
mod growing_value;
mod lock;
mod long_results;
mod openapi;
mod options;
mod origins;
mod outcome;
mod part;
mod protocol;
mod reader;
mod reply;
mod reply_details;
mod rows;
mod run;
mod run_view;
mod sandbox;
mod script;
mod script_run;
mod setup;
mod shared;
mod store;
mod toolset;
mod value;

use pyo3::prelude::*;

/// The private native module of the package `callslip`.
#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::command::{PyCommand, PyDelta};
    #[pymodule_export]
    use super::envelope::PyEnvelopeWriter;
    #[pymodule_export]
    use super::long_results::{longest_shown, offers_read_result};
    #[pymodule_export]
    use super::openapi::{PyDocument, json_text, yaml_to_json};
    #[pymodule_export]
    use super::origins::{hidden_replies, origins_of, set_can_ask};
    #[pymodule_export]
    use super::outcome::PyOutcome;
    #[pymodule_export]
    use super::part::PyPart;
    #[pymodule_export]
    use super::protocol::{PyGrammar, PyPromptExample, PyProtocol};
    #[pymodule_export]
    use super::reader::{PyPartialCall, PyReader, PySnapshot};
    #[pymodule_export]
    use super::reply::{PyMove, PyRepair, PyReply, PyToolCall, PyViolation};
    #[pymodule_export]
    use super::reply_details::note_certainty;
    #[pymodule_export]
    use super::rows::{PyEnding, PyHttpRequest, PyMessage, PyOpenTask, PyRunRow, PyShortened, PyTicketRow, PyUsage};
    #[pymodule_export]
    use super::run::PyRun;
    #[pymodule_export]
    use super::run_view::PyRunView;
    #[pymodule_export]
    use super::sandbox::{PyScriptJob, probe};
    #[pymodule_export]
    use super::script::{read_script, script_hints};
    #[pymodule_export]
    use super::script_run::{run_began, script_outcomes, script_printed, script_steps};
    #[pymodule_export]
    use super::setup::PySetup;
    #[pymodule_export]
    use super::shared::{PyNotices, PySharedRuns};
    #[pymodule_export]
    use super::store::{PyStore, PyWaker};
    #[pymodule_export]
    use super::toolset::PyToolSet;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

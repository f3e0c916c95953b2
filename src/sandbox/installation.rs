//! The installation of packages as a job.

use super::event::Event;
use super::job::EventSender;
use super::packages::{self, InstallRequest, NotInstalled};

/// Installs missing packages, or resolves them only, and sends the events.
pub async fn install(request: InstallRequest, events: EventSender) {
    let tell = |stage: &str, message: &str| {
        events.send(&Event::Deps { stage: stage.to_owned(), message: message.to_owned() });
    };
    let done = if request.resolve_only {
        let resolved = packages::resolve(&request, tell, events.cancelled.clone()).await;
        resolved.map(|resolved| Event::Resolved { packages: resolved.packages, path: resolved.path })
    } else {
        let installed = packages::install(&request, tell, events.cancelled.clone()).await;
        installed.map(|installed| Event::Installed { path: installed.path, fresh: installed.fresh })
    };
    let last = match done {
        Ok(event) => event,
        Err(NotInstalled::Refused(refused)) => {
            Event::Refused { code: refused.code.as_str().to_owned(), message: refused.message }
        }
        Err(error @ NotInstalled::InterpreterMissing(_)) => Event::Failed {
            error: "interpreter_missing",
            stage: None,
            errno: None,
            remedy: None,
            message: error.to_string(),
        },
        Err(error @ NotInstalled::Cancelled) => {
            Event::Refused { code: "dependency_install_failed".to_owned(), message: error.to_string() }
        }
    };
    events.send(&last);
}

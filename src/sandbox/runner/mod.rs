//! Runs one script in its box, from the order to the launcher to the result.

mod artifacts;
mod capture;
mod control_group;
mod folder;
mod launch_spec;
mod launcher_process;
mod marked_processes;
mod output_stream;
mod probe;
mod prompts;
mod removal;
mod request;
mod script_user;
mod session_files;
mod supervisor;

pub use probe::{Offered, probe};
pub use request::Request;

use super::event::Event;
use super::job::EventSender;
use super::wire::Profile;
use probe::Unavailable;
use request::Choice;

/// Runs a script and sends its events. Returns when all of its processes are dead and its files are copied.
pub async fn run(request: Request, mut events: EventSender) {
    let last = match choose(&request).await {
        Ok(profile) => supervisor::run(&request, profile, &mut events).await,
        Err(missing) => missing.into(),
    };
    events.send(&last);
}

/// The strongest profile that the machine offers, or the one that was asked for.
async fn choose(request: &Request) -> Result<Profile, Unavailable> {
    let tools = request.tools();
    let offered = async |profile| match probe::missing(profile, &tools).await {
        Some(missing) => Err(missing),
        None => Ok(profile),
    };
    match request.profile {
        Choice::Unconfined => Ok(Profile::Unconfined),
        Choice::Isolated => offered(Profile::Isolated).await,
        Choice::Restricted => offered(Profile::Restricted).await,
        Choice::Auto => match offered(Profile::Isolated).await {
            Ok(profile) => Ok(profile),
            // What the machine lacks for a moment is no reason for a weaker box.
            Err(isolated) if isolated.may_pass() => Err(isolated),
            Err(isolated) => offered(Profile::Restricted).await.map_err(|restricted| isolated.and(&restricted)),
        },
    }
}

impl From<Unavailable> for Event {
    fn from(missing: Unavailable) -> Self {
        let message = missing.to_string();
        let error =
            if missing.stage == "starting the interpreter" { "interpreter_missing" } else { "isolation_unavailable" };
        let remedy = Some(missing.remedy);
        Self::Failed { error, stage: Some(missing.stage), errno: Some(missing.errno), remedy, message }
    }
}

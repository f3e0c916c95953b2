//! Runs one script in its box, from the order to the launcher to the result.

mod capture;
mod course;
mod folder;
mod launched;
mod place;
mod probe;
mod prompts;
mod removal;
mod request;
mod stream;
mod user;

pub use probe::{Offered, probe};
pub use request::Request;

use super::event::Event;
use super::job::Teller;
use super::wire::Profile;
use probe::Unavailable;
use request::Choice;

/// Runs a script and tells of it. It returns when all of its processes are dead and its files are taken over.
pub async fn run(request: Request, mut teller: Teller) {
    let last = match choose(&request).await {
        Ok(profile) => course::run(&request, profile, &mut teller).await,
        Err(missing) => missing.into(),
    };
    teller.tell(&last);
}

/// The strongest profile that the machine offers, or the one that was asked for.
async fn choose(request: &Request) -> Result<Profile, Unavailable> {
    let profile = match request.profile {
        Choice::Unconfined => return Ok(Profile::Unconfined),
        Choice::Isolated => Some(Profile::Isolated),
        Choice::Restricted => Some(Profile::Restricted),
        Choice::Auto => None,
    };
    let offered = probe::offered(&request.tools()).await;
    match (profile, offered.isolated, offered.restricted) {
        (Some(Profile::Isolated) | None, None, _) => Ok(Profile::Isolated),
        (Some(Profile::Restricted), _, None) | (None, Some(_), None) => Ok(Profile::Restricted),
        (Some(Profile::Restricted), _, Some(missing)) | (Some(_), Some(missing), _) => Err(missing),
        (None, Some(isolated), Some(restricted)) => Err(isolated.and(&restricted)),
        (Some(Profile::Unconfined), None, _) => Ok(Profile::Unconfined),
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

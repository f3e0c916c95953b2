//! An operation and its arguments as the request to be sent. Nothing is sent here, and a plan holds no secret until it
//! is given one.

mod body;
mod file;
mod form;
mod multipart;
mod secret;
mod style;
mod url;

pub use secret::Credential;

use super::api::Api;
use super::arguments::argument_names;
use super::body::{Body, BodyPosition};
use super::document::Members;
use crate::reply::Object;
use crate::tool::describe::named;
use secret::Scheme;
use style::{Location, Parameter};

/// A request as it goes out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// In capitals.
    pub method: String,
    /// The server's, with path and query, percent-encoded.
    pub url: String,
    /// Names and values in their order.
    pub headers: Vec<(String, String)>,
    /// Empty where there is none.
    pub body: Vec<u8>,
}

/// Why arguments make no request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// There is no such operation.
    #[error("the document has no operation {}", named(.0))]
    Unknown(String),
    /// An argument cannot be sent.
    #[error("{} can't be sent: {}", named(.0), .1)]
    Argument(String, String),
}

impl Api {
    /// The request that calls an operation with arguments that were checked before. `server` goes before the path;
    /// `credentials` are by the name of their security scheme, those that [`Api::credentials`] names.
    ///
    /// # Errors
    /// Where there is no such operation, or an argument has no form in which it could be sent.
    pub fn request(
        &self,
        name: &str,
        arguments: &Object,
        server: &str,
        credentials: &[(String, Credential)],
    ) -> Result<Request, RequestError> {
        let unknown = || RequestError::Unknown(name.to_owned());
        let operation = self.operations.get(name).ok_or_else(unknown)?;
        let (_, object) = self.document.objects(operation).ok_or_else(unknown)?;
        let mut parts = url::Parts::new(server, &operation.path);
        let mut headers = vec![("Accept".to_owned(), self.accept(object))];
        let mut cookies = Vec::new();
        let parameters = argument_names(&self.document, operation);
        for (argument, parameter) in &parameters {
            let Some(value) = arguments.get(argument) else {
                continue;
            };
            let cannot = |cause: String| RequestError::Argument(argument.clone(), cause);
            let parameter = Parameter::of(parameter);
            match parameter.location {
                Location::Path => parts.fill(parameter.name, &parameter.path(value)),
                // Some documents have the query in the path, and its parameters too.
                Location::Query if parts.unfilled_in_query().iter().any(|name| name == parameter.name) => {
                    parts.fill(parameter.name, &parameter.path(value));
                }
                Location::Query => parts.query.extend(parameter.pairs(value)),
                Location::Header => {
                    if let Some(text) = parameter.header(value).map_err(cannot)? {
                        headers.push((parameter.name.to_owned(), text));
                    }
                }
                Location::Cookie => cookies.extend(parameter.pairs(value)),
            }
        }
        for name in parts.unfilled() {
            // The document uses it and does not declare it: it is a required string.
            let Some(value) = arguments.get(&name) else {
                return Err(RequestError::Argument(name, "it is a part of the path and was not given".to_owned()));
            };
            parts.fill(&name, &Parameter::undeclared(&name).path(value));
        }
        for name in parts.unfilled_in_query() {
            if let Some(value) = arguments.get(&name) {
                parts.fill(&name, &Parameter::undeclared(&name).path(value));
            }
        }
        parts.check().map_err(|(name, cause)| RequestError::Argument(name, cause))?;
        let names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
        let mut content = Vec::new();
        if let Some(body) = Body::of(&self.document, object, &names)
            && let Some((media, bytes)) = self.content(&body, &names, arguments)?
        {
            headers.push(("Content-Type".to_owned(), media));
            content = bytes;
        }
        for (name, credential) in credentials {
            if let Some(scheme) = self.scheme(name).and_then(Scheme::read) {
                let cannot = |cause: String| RequestError::Argument(name.clone(), cause);
                scheme.apply(credential, &mut parts.query, &mut headers, &mut cookies).map_err(cannot)?;
            }
        }
        if !cookies.is_empty() {
            let cookies: Vec<String> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            headers.push(("Cookie".to_owned(), cookies.join("; ")));
        }
        Ok(Request { method: operation.method.clone(), url: parts.url(), headers, body: content })
    }

    /// The path that a call goes to, percent-encoded, without its server and query; `None` where the arguments make none.
    pub(crate) fn path(&self, name: &str, arguments: &Object) -> Option<String> {
        let operation = self.operations.get(name)?;
        let mut parts = url::Parts::new("", &operation.path);
        let parameters = argument_names(&self.document, operation);
        for (argument, parameter) in &parameters {
            let parameter = Parameter::of(parameter);
            if parameter.location == Location::Path {
                parts.fill(parameter.name, &parameter.path(arguments.get(argument)?));
            }
        }
        for name in parts.unfilled() {
            parts.fill(&name, &Parameter::undeclared(&name).path(arguments.get(&name)?));
        }
        let url = parts.url();
        Some(url.split('?').next().unwrap_or_default().to_owned())
    }

    /// The server that the whole document names first.
    pub(crate) fn default_server(&self) -> Option<String> {
        let servers = self.document.member("servers")?.as_array()?;
        url::server(servers.first()?).ok()
    }

    /// The server of an operation, its variables at their defaults; `None` where the document names none. It may be
    /// relative to where the document was found.
    ///
    /// # Errors
    /// Where a variable has no default.
    pub fn server(&self, name: &str) -> Result<Option<String>, RequestError> {
        let operation = self.operations.get(name).ok_or_else(|| RequestError::Unknown(name.to_owned()))?;
        let (item, object) = self.document.objects(operation).unzip();
        let root = self.document.member("servers");
        let mut servers =
            [object.and_then(|object| object.get("servers")), item.and_then(|item| item.get("servers")), root]
                .into_iter()
                .flatten()
                .filter_map(|servers| servers.as_array()?.first());
        match servers.next() {
            Some(server) => {
                url::server(server).map(Some).map_err(|cause| RequestError::Argument("server".to_owned(), cause))
            }
            None => Ok(None),
        }
    }

    /// What a response may be, JSON first.
    fn accept(&self, operation: &Members) -> String {
        let responses = operation.get("responses").and_then(serde_json::Value::as_object);
        let good = |status: &str| status.starts_with('2') || status == "default";
        let mut medias: Vec<&String> = Vec::new();
        for (_, response) in responses.into_iter().flatten().filter(|(status, _)| good(status)) {
            let content = self.document.follow(response).and_then(|response| response.get("content")?.as_object());
            for (media, _) in content.into_iter().flatten() {
                if !medias.contains(&media) && media.bytes().all(|byte| (32..127).contains(&byte)) {
                    medias.push(media);
                }
            }
        }
        medias.sort_by_key(|media| !super::body::is_json(&super::body::essence(media)));
        if medias.is_empty() {
            return "*/*".to_owned();
        }
        medias.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    fn content(
        &self,
        body: &Body<'_>,
        parameters: &[&str],
        arguments: &Object,
    ) -> Result<Option<(String, Vec<u8>)>, RequestError> {
        let value = match &body.position {
            BodyPosition::Under(name) => match arguments.get(name) {
                Some(value) => value.clone(),
                None => return Ok(None),
            },
            BodyPosition::Beside(_) => {
                let given: Object = arguments
                    .iter()
                    .filter(|(name, _)| !parameters.contains(name))
                    .map(|(name, value)| (name, value.clone()))
                    .collect();
                if given.is_empty() && !body.required {
                    return Ok(None);
                }
                crate::reply::Value::Object(given)
            }
        };
        body::encode(&self.document, body, &value).map(Some)
    }

    fn scheme(&self, name: &str) -> Option<&serde_json::Value> {
        self.document.component("securitySchemes", name)
    }

    /// The names of the security schemes of the document.
    pub fn schemes(&self) -> Vec<&str> {
        self.document.component_names("securitySchemes")
    }

    /// Which of the `available` credentials an operation is called with: the first way in which the document lets it be
    /// called and that needs no others.
    pub fn credentials(&self, name: &str, available: &[String]) -> Vec<String> {
        let Some(operation) = self.operations.get(name) else { return Vec::new() };
        match self.document.security(operation) {
            Some(security) => secret::choose(security, available),
            None if self.is_secured() => Vec::new(),
            // The document says of nothing how it is secured: what the program gives is sent, one a place.
            None => {
                let mut places = Vec::new();
                let fits = |name: &&String| {
                    let Some(place) = self.scheme(name).and_then(Scheme::read).map(|scheme| scheme.place()) else {
                        return false;
                    };
                    let free = !places.contains(&place);
                    places.push(place);
                    free
                };
                available.iter().filter(fits).cloned().collect()
            }
        }
    }

    /// The `available` credentials that no operation is called with.
    pub fn unsent(&self, available: &[String]) -> Vec<String> {
        let mut unsent: Vec<String> = available.to_vec();
        for name in self.operations.keys() {
            if unsent.is_empty() {
                break;
            }
            let sent = self.credentials(name, available);
            unsent.retain(|one| !sent.contains(one));
        }
        // One way of several is enough, and what stands for others is not left out.
        let own = self.operations.values().filter_map(|one| self.document.security(one));
        let requirements =
            own.chain(self.document.member("security")).filter_map(serde_json::Value::as_array).flatten();
        let named: Vec<&String> =
            requirements.filter_map(serde_json::Value::as_object).flat_map(serde_json::Map::keys).collect();
        unsent.retain(|one| !named.contains(&one));
        unsent
    }
}

#[cfg(test)]
mod tests;

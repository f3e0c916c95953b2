use super::{Credential, Request};
use crate::reply::json_text::parse;
use crate::reply::{Object, Value};
use crate::tool::openapi::Api;
use proptest::prelude::*;

const DOCUMENT: &str = r#"{
  "openapi": "3.1.0",
  "servers": [{"url": "https://{region}.example.com/v1/", "variables": {"region": {"default": "eu"}}}],
  "paths": {
    "/pets/{id}": {
      "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
      "get": {
        "parameters": [
          {"name": "tags", "in": "query", "schema": {"type": "array"}},
          {"name": "near", "in": "query", "style": "deepObject", "schema": {"type": "object"}},
          {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
          {"name": "seen", "in": "cookie", "explode": false, "schema": {"type": "array"}}
        ],
        "security": [{}, {"key": [], "basic": []}, {"token": []}],
        "responses": {"200": {"content": {"text/csv": {}, "application/json": {"schema": {"type": "object", "required": ["id"]}}}}}
      },
      "delete": {"servers": [{"url": "/admin"}]}
    },
    "/{kind}:{verb}/{left}": {"get": {}},
    "/form": {"post": {"requestBody": {"content": {"application/x-www-form-urlencoded": {
      "schema": {"type": "object", "additionalProperties": true},
      "encoding": {"items": {"style": "deepObject"}, "note": {"contentType": "application/json"}}
    }}}}},
    "/files": {"post": {"requestBody": {"content": {"multipart/form-data": {
      "schema": {"type": "object", "properties": {
        "id": {"type": "integer", "readOnly": true},
        "photo": {"type": "string", "format": "binary"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "owner": {"type": "object"}
      }},
      "encoding": {"photo": {"contentType": "image/png", "headers": {"X-Kind": {"schema": {"const": "pet"}}}}}
    }}}}}
  },
  "components": {"securitySchemes": {
    "key": {"type": "apiKey", "in": "query", "name": "api key"},
    "basic": {"type": "http", "scheme": "basic"},
    "token": {"type": "oauth2"},
    "session": {"type": "apiKey", "in": "cookie", "name": "sid"}
  }}
}"#;

fn api() -> Api {
    Api::parse(DOCUMENT).unwrap()
}

fn object(text: &str) -> Object {
    match parse(text).unwrap() {
        Value::Object(object) => object,
        other => panic!("{other:?}"),
    }
}

fn planned(name: &str, arguments: &str) -> Request {
    api().request(name, &object(arguments), "https://x.test/v1/", &[]).unwrap()
}

fn refused(name: &str, arguments: &str) -> String {
    api().request(name, &object(arguments), "", &[]).unwrap_err().to_string()
}

#[test]
fn parameters_go_where_the_document_says() {
    let request = planned(
        "GET /pets/{id}",
        r#"{"id": "a/b ü", "tags": ["x", "y&z"], "near": {"lat": 1.50, "in": ["m"]}, "X-Trace": "t 1", "seen": [1, 2]}"#,
    );
    assert_eq!(
        request.url,
        "https://x.test/v1/pets/a%2Fb%20%C3%BC?tags=x&tags=y%26z&near%5Blat%5D=1.50&near%5Bin%5D%5B0%5D=m"
    );
    let headers: Vec<String> = request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(headers, ["Accept: application/json, text/csv", "X-Trace: t 1", "Cookie: seen=1,2"]);
    assert!(request.body.is_empty());
}

#[test]
fn a_value_does_not_lead_out_of_its_place() {
    let way_out = "'id' can't be sent: it is a part of the path, and '..' in it would lead out of it";
    assert_eq!(refused("GET /pets/{id}", r#"{"id": ".."}"#), way_out);
    assert_eq!(refused("GET /pets/{id}", r#"{"id": "../x"}"#), way_out);
    assert_eq!(planned("GET /pets/{id}", r#"{"id": "..x/y"}"#).url, "https://x.test/v1/pets/..x%2Fy");
    let empty = "'id' can't be sent: it is a part of the path, and empty it would name another one";
    assert_eq!(refused("GET /pets/{id}", r#"{"id": ""}"#), empty);
    assert_eq!(refused("GET /pets/{id}", r#"{"id": null}"#), empty);
    let line = "'X-Trace' can't be sent: a header holds no line breaks or other control characters";
    assert_eq!(refused("GET /pets/{id}", r#"{"id": "1", "X-Trace": "a\r\nEvil: 1"}"#), line);
}

#[test]
fn what_a_path_uses_without_saying_so_is_a_string() {
    let request = planned("GET /{kind}:{verb}/{left}", r#"{"kind": "a{verb}", "verb": "run", "left": 5}"#);
    assert_eq!(request.url, "https://x.test/v1/a%7Bverb%7D:run/5");
    let missing = "'left' can't be sent: it is a part of the path and was not given";
    assert_eq!(refused("GET /{kind}:{verb}/{left}", r#"{"kind": "a", "verb": "b"}"#), missing);
}

#[test]
fn servers_have_their_variables_filled() {
    assert_eq!(api().server("GET /pets/{id}").unwrap().unwrap(), "https://eu.example.com/v1/");
    assert_eq!(api().server("DELETE /pets/{id}").unwrap().unwrap(), "/admin");
}

#[test]
fn secrets_go_where_their_scheme_says() {
    let available = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let api = api();
    assert_eq!(api.credentials("GET /pets/{id}", &available(&["basic", "token"])), ["token"]);
    assert_eq!(api.credentials("GET /pets/{id}", &available(&["basic", "key"])), ["key", "basic"]);
    assert!(api.credentials("GET /pets/{id}", &available(&["basic"])).is_empty());
    let credentials = [
        ("key".to_owned(), Credential::Token("k&1".to_owned())),
        ("basic".to_owned(), Credential::Basic { user: "u".to_owned(), password: "p".to_owned() }),
        ("session".to_owned(), Credential::Token("s".to_owned())),
    ];
    let request = api.request("GET /pets/{id}", &object(r#"{"id": "1"}"#), "", &credentials).unwrap();
    assert_eq!(request.url, "/pets/1?api%20key=k%261");
    assert!(request.headers.contains(&("Authorization".to_owned(), "Basic dTpw".to_owned())));
    assert!(request.headers.contains(&("Cookie".to_owned(), "sid=s".to_owned())));
    let shown = format!("{credentials:?}");
    assert!(!shown.contains("k&1"), "{shown}");
}

#[test]
fn forms_are_written_by_the_encoding_of_each_property() {
    let request = planned(
        "POST /form",
        r#"{"a": "x y", "items": [{"price": "p", "n": 2}], "note": "n", "tags": ["1", "2"], "more": {"b": 1}, "none": null}"#,
    );
    assert_eq!(
        String::from_utf8(request.body).unwrap(),
        "a=x+y&items%5B0%5D%5Bprice%5D=p&items%5B0%5D%5Bn%5D=2&note=%22n%22&tags=1&tags=2&more=%7B%22b%22%3A1%7D"
    );
}

#[test]
fn parts_of_a_multipart_body_have_names_and_types() {
    let request = planned(
        "POST /files",
        r#"{"photo": {"base64": "AP8=", "filename": "a\"b.png"}, "tags": ["x", "y"], "owner": {"n": 1}}"#,
    );
    let (_, media) = request.headers.last().unwrap();
    let boundary = media.strip_prefix("multipart/form-data; boundary=").unwrap();
    let body: Vec<u8> = [
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"a%22b.png\"\r\n")
            .as_bytes(),
        b"Content-Type: image/png\r\nX-Kind: pet\r\n\r\n\x00\xff\r\n",
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"tags\"\r\n\r\nx\r\n").as_bytes(),
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"tags\"\r\n\r\ny\r\n").as_bytes(),
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"owner\"\r\n").as_bytes(),
        b"Content-Type: application/json\r\n\r\n{\"n\":1}\r\n",
        format!("--{boundary}--\r\n").as_bytes(),
    ]
    .concat();
    assert_eq!(request.body, body);
    let refused = refused("POST /files", r#"{"photo": {"base64": "?"}}"#);
    assert!(refused.starts_with("'photo' can't be sent: its base64 can't be read: "), "{refused}");
}

#[test]
fn responses_are_held_against_the_document() {
    let api = api();
    let problems = |media: &str, body: &str| api.check_response("GET /pets/{id}", 200, media, body);
    assert!(problems("application/json; charset=utf-8", r#"{"id": 1}"#).is_empty());
    assert_eq!(problems("application/json", "{}"), ["the body: \"id\" is a required property"]);
    assert!(problems("text/csv", "a,b").is_empty());
    assert!(api.check_response("GET /pets/{id}", 404, "application/json", "[]").is_empty());
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        "\\PC{0,8}|[./%&=#?;,{} \r\n]{0,4}".prop_map(Value::from),
        any::<i32>().prop_map(|number| parse(&number.to_string()).unwrap()),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec(("[a-z/&\\[]{0,4}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

const STYLES: [&str; 8] = ["", "matrix", "label", "simple", "form", "spaceDelimited", "pipeDelimited", "deepObject"];

proptest! {
    /// Whatever the values are: nothing panics, and no value breaks out of its place in the request.
    #[test]
    fn any_values_stay_in_their_places(
        values in prop::collection::vec(any_value(), 4),
        style in prop::sample::select(STYLES.to_vec()),
        explode in any::<bool>(),
        reserved in any::<bool>(),
    ) {
        let parameters: Vec<serde_json::Value> = ["path", "query", "header", "cookie"]
            .iter()
            .map(|place| serde_json::json!({"name": place, "in": place, "style": style, "explode": explode, "allowReserved": reserved}))
            .collect();
        let document = serde_json::json!({"openapi": "3.1.0", "paths": {"/a/{path}/b": {"get": {"parameters": parameters}}}});
        let api = Api::parse(&document.to_string()).unwrap();
        let names = ["path", "query", "header", "cookie"];
        let arguments: Object = names.into_iter().zip(values).collect();
        if let Ok(request) = api.request("GET /a/{path}/b", &arguments, "http://h", &[]) {
            let (path, query) = request.url.split_once('?').unwrap_or((&request.url, ""));
            prop_assert_eq!(path.matches('/').count(), 5, "{}", request.url);
            prop_assert!(request.url.is_ascii() && !request.url.contains([' ', '#', '\n', '"']), "{}", request.url);
            prop_assert!(!query.contains('#'));
            for (name, value) in &request.headers {
                prop_assert!(!value.contains(['\r', '\n', '\0']), "{name}: {value}");
            }
        }
    }
}

//! What services and their messages are: read of `.proto` files or descriptors, so that messages are
//! made of JSON and shown as JSON.

use std::collections::HashMap;

use prost::Message;
use prost_reflect::prost_types::Any;
use prost_reflect::{
    DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor, ReflectMessage,
    Value as Field,
};
use protox::Compiler;
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
use serde_json::Value;

/// How deep messages may lie in each other to be shown, as the decoder has it.
const MOST_LEVELS: usize = 100;
/// The message that holds one of any kind, and for how many levels it counts.
const ANY: &str = "google.protobuf.Any";
const LEVELS_OF_ANY: usize = 10;

/// The texts of `.proto` files, by the names that imports have.
pub type Sources = HashMap<String, String>;

/// Compiles a file of these, as the bytes of a `FileDescriptorSet` with all that it imports.
///
/// No file is opened: what an import leads to, who asks has looked at. Those of protobuf itself are
/// known, whatever the sources call theirs. Errors name file and line.
pub fn compile(name: &str, sources: Sources) -> Result<Vec<u8>, String> {
    let mut known = ChainFileResolver::new();
    known.add(GoogleFileResolver::new());
    known.add(Texts(sources));
    let mut compiler = Compiler::with_file_resolver(known);
    compiler.include_imports(true);
    // As text for debugging it has file and line.
    compiler.open_file(name).map_err(|error| format!("{error:?}"))?;
    Ok(compiler.encode_file_descriptor_set())
}

struct Texts(Sources);

impl FileResolver for Texts {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match self.0.get(name) {
            Some(text) => File::from_source(name, text),
            None => Err(protox::Error::file_not_found(name)),
        }
    }
}

/// Services and messages that are known.
#[derive(Debug, Clone)]
pub struct Descriptors(DescriptorPool);

impl Descriptors {
    /// Reads a `FileDescriptorSet`; several behind each other are one.
    pub fn decode(bytes: &[u8]) -> Result<Descriptors, String> {
        DescriptorPool::decode(bytes)
            .map(Descriptors)
            .map_err(|error| format!("are no FileDescriptorSet: {error}"))
    }

    /// The method that a path asks for, such as `/helloworld.Greeter/SayHello`.
    pub fn method(&self, path: &str) -> Result<MethodDescriptor, String> {
        let (service, method) = parts(path)?;
        let found = self.0.get_service_by_name(service);
        let known = || names(self.0.services().map(|known| known.full_name().to_owned()));
        let found =
            found.ok_or_else(|| format!("there is no service {service}; there is {}", known()))?;
        let known = || names(found.methods().map(|known| known.name().to_owned()));
        let wanted = found.methods().find(|known| known.name() == method);
        wanted.ok_or_else(|| format!("{service} has no method {method}; it has {}", known()))
    }
}

/// Service and method of a path.
pub fn parts(path: &str) -> Result<(&str, &str), String> {
    let path = path.split('?').next().unwrap_or_default();
    let parts = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    parts
        .filter(|(service, method)| !service.is_empty() && !method.is_empty())
        .ok_or_else(|| format!("{path:?} is no call; write /helloworld.Greeter/SayHello"))
}

fn names(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    if all.is_empty() { "none".into() } else { all.join(", ") }
}

/// Makes the messages of a call: of an object one, of a list one of each.
pub fn messages(method: &MethodDescriptor, json: &Value) -> Result<Vec<Vec<u8>>, String> {
    let input = method.input();
    match json {
        Value::Array(list) if method.is_client_streaming() => {
            let numbered = list.iter().enumerate();
            let made = numbered.map(|(number, json)| {
                message(&input, json).map_err(|why| format!("message {number}: {why}"))
            });
            made.collect()
        }
        Value::Array(_) => {
            Err(format!("{} takes one message, and no list of them", method.full_name()))
        }
        one => Ok(vec![message(&input, one)?]),
    }
}

fn message(kind: &MessageDescriptor, json: &Value) -> Result<Vec<u8>, String> {
    let mut track = serde_path_to_error::Track::new();
    let from = serde_path_to_error::Deserializer::new(json, &mut track);
    match DynamicMessage::deserialize(kind.clone(), from) {
        Ok(message) => Ok(message.encode_to_vec()),
        Err(error) => {
            let place = match track.path().to_string() {
                root if root == "." => String::new(),
                path => format!("{path}: "),
            };
            let known = names(kind.fields().map(|field| field.name().to_owned()));
            Err(format!("{place}{error}; {} has {known}", kind.full_name()))
        }
    }
}

/// The answer to a call as JSON: of one message an object, of a stream a list.
pub fn json(method: &MethodDescriptor, messages: &[Vec<u8>]) -> Result<Value, String> {
    let read = |message: &Vec<u8>| -> Result<Value, String> {
        let output = method.output();
        let wrong = format!("has a message that is no {}", output.full_name());
        let message = DynamicMessage::decode(output, &message[..])
            .map_err(|error| format!("{wrong}: {error}"))?;
        check_depth(&message, MOST_LEVELS)?;
        serde_json::to_value(&message).map_err(|error| format!("{wrong}: {error}"))
    };
    let mut all = messages.iter().map(read).collect::<Result<Vec<Value>, String>>()?;
    Ok(match all.len() {
        1 if !method.is_server_streaming() => all.remove(0),
        _ => Value::Array(all),
    })
}

/// Refuses messages that lie within each other more than so deep. One of any kind is copied out of
/// the one around it, and the decoder's own limit of depth begins anew in it.
fn check_depth(message: &DynamicMessage, left: usize) -> Result<(), String> {
    if message.descriptor().full_name() != ANY {
        return message.fields().try_for_each(|(_, value)| check_depth_of(value, left));
    }
    let any: Any = message.transcode_to().map_err(|error| format!("{ANY}: {error}"))?;
    let name = any.type_url.rsplit('/').next().unwrap_or_default();
    let Some(kind) = message.descriptor().parent_pool().get_message_by_name(name) else {
        return Ok(()); // which is said where it is shown
    };
    let left = deeper(left, LEVELS_OF_ANY)?;
    let inner = DynamicMessage::decode(kind, &any.value[..]);
    check_depth(&inner.map_err(|error| format!("{ANY}: {error}"))?, left)
}

fn check_depth_of(value: &Field, left: usize) -> Result<(), String> {
    match value {
        Field::Message(inner) => check_depth(inner, deeper(left, 1)?),
        Field::List(values) => values.iter().try_for_each(|value| check_depth_of(value, left)),
        Field::Map(values) => values.values().try_for_each(|value| check_depth_of(value, left)),
        _ => Ok(()),
    }
}

fn deeper(left: usize, by: usize) -> Result<usize, String> {
    left.checked_sub(by)
        .ok_or_else(|| format!("has more than {MOST_LEVELS} messages in each other"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const GREETER: &str = r#"
        syntax = "proto3";
        package hello;
        import "google/protobuf/timestamp.proto";
        import "shared/place.proto";
        message Request { string first_name = 1; shared.Place place = 2; int64 id = 3; }
        message Reply { string text = 1; google.protobuf.Timestamp at = 2; }
        service Greeter {
            rpc Say(Request) returns (Reply);
            rpc Talk(stream Request) returns (stream Reply);
        }
    "#;
    const PLACE: &str = r#"
        syntax = "proto3";
        package shared;
        message Place { string city = 1; }
    "#;

    fn compiled(greeter: &str) -> Result<Vec<u8>, String> {
        let texts = [("greeter.proto", greeter), ("shared/place.proto", PLACE)];
        let sources = texts.map(|(name, text)| (name.to_owned(), text.to_owned()));
        compile("greeter.proto", sources.into())
    }

    fn greeter() -> Descriptors {
        Descriptors::decode(&compiled(GREETER).expect("compiles")).expect("descriptors")
    }

    #[test]
    fn messages_are_made_of_json_and_shown_as_json() {
        let say = greeter().method("/hello.Greeter/Say").expect("a method");
        let asked = json!({"firstName": "ann", "place": {"city": "Bern"}, "id": "7"});
        let made = messages(&say, &asked).expect("messages");
        assert_eq!(made, [b"\x0a\x03ann\x12\x06\x0a\x04Bern\x18\x07".to_vec()]);
        assert_eq!(messages(&say, &json!({"first_name": "ann"})), Ok(vec![b"\x0a\x03ann".into()]));
        let reply = b"\x0a\x02hi\x12\x02\x08\x01".to_vec();
        let shown = json!({"text": "hi", "at": "1970-01-01T00:00:01Z"});
        assert_eq!(json(&say, std::slice::from_ref(&reply)), Ok(shown.clone()));
        let talk = greeter().method("/hello.Greeter/Talk").expect("a method");
        assert_eq!(messages(&talk, &json!([{}, {"id": 1}])), Ok(vec![vec![], b"\x18\x01".into()]));
        assert_eq!(json(&talk, &[reply]), Ok(json!([shown])));
        assert_eq!(json(&talk, &[]), Ok(json!([])));
        assert!(json(&say, &[b"\xff".to_vec()]).expect_err("damaged").contains("hello.Reply"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let say = greeter().method("/hello.Greeter/Say").expect("a method");
        for (asked, why) in [
            (json!({"name": "ann"}), "'name'; hello.Request has first_name, place, id"),
            (json!({"place": {"town": "x"}}), "place: unrecognized field name 'town'"),
            (json!({"id": "x"}), "id: "),
            (json!([{}]), "one message"),
            (json!("x"), "hello.Request"),
        ] {
            let refused = messages(&say, &asked).expect_err(why);
            assert!(refused.contains(why), "{refused}");
        }
        for (path, why) in [
            ("/hello.Greeter/Sing", "it has Say, Talk"),
            ("/hello.Singer/Say", "there is hello.Greeter"),
            ("/hello.Greeter", "is no call"),
            ("/", "is no call"),
        ] {
            assert!(greeter().method(path).expect_err(why).contains(why), "{path}");
        }
        assert!(Descriptors::decode(b"\xff").is_err());
    }

    #[test]
    fn protobufs_own_files_are_its_own_and_no_file_is_opened() {
        let import = |name: &str| {
            let text = format!("syntax = \"proto3\";\nimport \"{name}\";\n");
            let stamp = "google/protobuf/timestamp.proto";
            let sources = [("x.proto", text.as_str()), (stamp, "none of protobuf's")];
            compile("x.proto", sources.map(|(name, text)| (name.into(), text.into())).into())
        };
        assert!(import("google/protobuf/timestamp.proto").is_ok());
        for name in ["/etc/passwd", "etc/passwd", "Cargo.toml"] {
            assert!(import(name).expect_err(name).starts_with("x.proto:2:"), "{name}");
        }
    }

    #[test]
    fn messages_lie_in_each_other_only_so_deep_of_any_kind_too() {
        let text = r#"
            syntax = "proto3";
            import "google/protobuf/any.proto";
            message Empty {}
            message Doll { Doll inner = 2; }
            service Box { rpc Open(Empty) returns (google.protobuf.Any); }
        "#;
        let set = compile("x.proto", [("x.proto".to_owned(), text.to_owned())].into());
        let known = Descriptors::decode(&set.expect("compiles")).expect("descriptors");
        let open = known.method("/Box/Open").expect("a method");
        let nested = |depth: usize| {
            (0..depth).fold(Any { type_url: "x/Empty".into(), value: vec![] }, |inner, _| Any {
                type_url: format!("x/{ANY}"),
                value: inner.encode_to_vec(),
            })
        };
        // Of Any field 2 holds bytes, as that of a doll holds a doll.
        let dolls = |depth: usize| {
            let field = |value| Any { type_url: String::new(), value }.encode_to_vec();
            let value = (0..depth).fold(b"\x12\0".into(), |inner, _| field(inner));
            Any { type_url: "x/Doll".into(), value }
        };
        for shown in [nested(9), dolls(80)] {
            assert!(json(&open, &[shown.encode_to_vec()]).is_ok());
        }
        for deep in [nested(4_000), dolls(95)] {
            let refused = json(&open, &[deep.encode_to_vec()]).expect_err("too deep");
            assert!(refused.contains("in each other"), "{refused}");
        }
    }

    #[test]
    fn mistakes_in_files_are_named_with_their_lines() {
        for (greeter, why) in [
            (GREETER.replace("string first_name", "strong first_name"), "greeter.proto:6:"),
            (GREETER.replace("rpc Say(", "rpc Say"), "greeter.proto:9:"),
            (GREETER.replace("place.proto", "plaice.proto"), "greeter.proto:5:"),
        ] {
            let refused = compiled(&greeter).expect_err(why);
            assert!(refused.contains(why), "{refused}");
        }
    }
}

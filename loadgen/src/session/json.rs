//! One place in a JSON text, found without building the rest of it.

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

/// A path such as `$.items[0].id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(Vec<Step>);

impl Path {
    pub fn parse(text: &str) -> Result<Path, String> {
        let wrong = || format!("{text:?} is no path in JSON such as $.token or $.items[0].id");
        let mut rest = text.strip_prefix('$').ok_or_else(wrong)?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, after) = if let Some(inner) = rest.strip_prefix('.') {
                let end = inner.find(['.', '[', ']']).unwrap_or(inner.len());
                let key = inner.get(..end).filter(|key| !key.is_empty()).ok_or_else(wrong)?;
                (Step::Key(key.into()), &inner[end..])
            } else {
                let inner = rest.strip_prefix('[').ok_or_else(wrong)?;
                let (index, after) = inner.split_once(']').ok_or_else(wrong)?;
                (Step::Index(index.parse().map_err(|_| wrong())?), after)
            };
            steps.push(step);
            rest = after;
        }
        Ok(Path(steps))
    }

    /// What stands there: a string's content, and anything else as it is written. There is nothing
    /// where that is null.
    pub fn find(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut value = None;
        let seek = Seek { steps: &self.0, value: &mut value };
        // What follows the place isn't looked at: the search ends with an error there.
        let _ = seek.deserialize(&mut serde_json::Deserializer::from_slice(text));
        value
    }
}

struct Seek<'a> {
    steps: &'a [Step],
    value: &'a mut Option<Vec<u8>>,
}

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        if !self.steps.is_empty() {
            return from.deserialize_any(self);
        }
        let written = <&RawValue>::deserialize(from)?.get();
        *self.value = match written.as_bytes().first() {
            Some(b'"') => serde_json::from_str::<String>(written).ok().map(String::into_bytes),
            _ if written == "null" => None,
            _ => Some(written.as_bytes().to_vec()),
        };
        Err(D::Error::custom("there it is"))
    }
}

impl<'de> Visitor<'de> for Seek<'_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("what the path goes through")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Text(key)) = map.next_key()? {
            if self.steps.first().is_some_and(|step| *step == Step::Key(key.as_ref().into())) {
                return map.next_value_seed(Seek { steps: &self.steps[1..], value: self.value });
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Some(Step::Index(index)) = self.steps.first() else {
            return Err(A::Error::custom("a list"));
        };
        for _ in 0..*index {
            if seq.next_element::<IgnoredAny>()?.is_none() {
                return Ok(());
            }
        }
        seq.next_element_seed(Seek { steps: &self.steps[1..], value: self.value })?;
        Ok(())
    }
}

/// A key, borrowed where nothing in it is escaped.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn value(path: &str, text: &str) -> Option<String> {
        let value = Path::parse(path).expect("a path").find(text.as_bytes());
        value.map(|value| String::from_utf8(value).expect("text"))
    }

    #[test]
    fn finds_what_is_there() {
        let text = r#"{"n": [1.50, {"id": "a\"\u00e9"}], "t": true, "o": {"k": [ ]}, "x": null,
                       "big": 12345678901234567890123}"#;
        for (path, wanted) in [
            ("$.n[0]", Some("1.50")),
            ("$.n[1].id", Some("a\"é")),
            ("$.t", Some("true")),
            ("$.o", Some(r#"{"k": [ ]}"#)),
            ("$.big", Some("12345678901234567890123")),
            ("$.x", None),
            ("$.n[2]", None),
            ("$.n.id", None),
            ("$.t.id", None),
            ("$.nope", None),
        ] {
            assert_eq!(value(path, text).as_deref(), wanted, "{path}");
        }
        assert_eq!(value("$[1]", "[1, 2]").as_deref(), Some("2"));
        assert_eq!(value("$", "\"all\"").as_deref(), Some("all"));
        assert_eq!(value("$.a", "{\"a\": \"cut"), None);
        assert_eq!(value("$.a", "<html>"), None);
    }

    #[test]
    fn refuses_what_is_no_path() {
        for bad in ["", "a", "$a", "$.", "$..a", "$[", "$[x]", "$[-1]", "$[*]", "$.a]"] {
            assert!(Path::parse(bad).is_err_and(|why| why.contains("$.token")), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(text: Vec<u8>) {
            Path::parse("$.a[0].b").expect("a path").find(&text);
        }

        #[test]
        fn any_string_is_found_again(key in "[a-z]{1,5}", value: String, more: Vec<i32>) {
            let whole = json!({"before": more, "in": [more, {&key: value}]});
            let path = Path::parse(&format!("$.in[1].{key}")).expect("a path");
            prop_assert_eq!(path.find(whole.to_string().as_bytes()), Some(value.into_bytes()));
            let path = Path::parse("$.in[0]").expect("a path");
            let list = path.find(whole.to_string().as_bytes()).expect("a list");
            prop_assert_eq!(serde_json::from_slice::<Value>(&list).expect("JSON"), json!(more));
        }
    }
}

//! Header fields as a JSON object whose order is kept.

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};

type Headers = Vec<(String, String)>;

pub fn serialize<S: Serializer>(headers: &Headers, to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(headers.len()))?;
    for (name, value) in headers {
        map.serialize_entry(name, value)?;
    }
    map.end()
}

pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Headers, D::Error> {
    struct InOrder;
    impl<'de> Visitor<'de> for InOrder {
        type Value = Headers;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object of header names and values")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Headers, A::Error> {
            let mut headers = Vec::new();
            while let Some(entry) = map.next_entry()? {
                headers.push(entry);
            }
            Ok(headers)
        }
    }
    from.deserialize_map(InOrder)
}

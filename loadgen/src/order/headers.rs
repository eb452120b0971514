//! Header fields as a JSON object whose order is kept.

use serde::de::{Deserializer, MapAccess, Visitor};

type Headers = Vec<(String, String)>;

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

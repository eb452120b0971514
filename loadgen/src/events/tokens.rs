//! Streams of language models as OpenAI's API has them, and vLLM, llama.cpp and others after it: only
//! chunks that bring something of the response are events.

use memchr::memmem;
use serde::Deserialize;
use serde_json::{Map, Value};

/// It ends a stream, and brings nothing.
const DONE: &[u8] = b"[DONE]";
/// Who speaks: the first chunk says it, before there is a token.
const ROLE: &str = "role";

/// What matters of a chunk, of chats and of other completions.
#[derive(Deserialize)]
struct Chunk {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Map<String, Value>>,
    text: Option<String>,
}

impl Choice {
    /// Text, reasoning or calls of tools, whatever they are called.
    fn brings_something(&self) -> bool {
        let is_some = |(name, value): (&String, &Value)| name != ROLE && !is_empty(value);
        self.text.as_ref().is_some_and(|text| !text.is_empty())
            || self.delta.iter().flatten().any(is_some)
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether an event with this data counts. Whatever is no chunk of a language model does.
pub fn is_event(data: &[u8]) -> bool {
    let data = data.trim_ascii();
    if data == DONE {
        return false;
    }
    if memmem::find(data, b"\"choices\"").is_none() {
        return true;
    }
    serde_json::from_slice::<Chunk>(data)
        .map_or(true, |chunk| chunk.choices.iter().any(Choice::brings_something))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_count_that_bring_something() {
        for (data, counts) in [
            ("[DONE]\n", false),
            ("anything", true),
            ("", true),
            (r#"{"error":{"message":"out of memory"}}"#, true),
            (r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#, false),
            (
                r#"{"choices":[{"delta":{"role":"assistant","content":null,"refusal":null}}]}"#,
                false,
            ),
            (r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":null}]}"#, true),
            (r#"{"choices":[{"delta":{"role":"assistant","content":"Hi"}}]}"#, true),
            (r#"{"choices":[{"delta":{"reasoning_content":"Hm"}}]}"#, true),
            (r#"{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}"#, true),
            (r#"{"choices":[{"delta":null,"text":null}]}"#, false),
            (r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#, false),
            (r#"{"choices":[{"index":0,"text":"Hi"}]}"#, true),
            (r#"{"choices":[{"index":0,"text":""}]}"#, false),
            (r#"{"choices":[],"usage":{"total_tokens":20}}"#, false),
            (r#"{"choices":"none of ours"}"#, true),
            (r#"{"choices":[{"delta":{"content":"cut"#, true),
        ] {
            assert_eq!(is_event(data.as_bytes()), counts, "{data}");
        }
    }
}

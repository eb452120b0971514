//! The reader of HTTP/2's frames: any split is heard alike, and no bytes whatever make it panic or
//! claim more than it was given.

use loadgen::http2::code::Fault;
use loadgen::http2::fields::Fields;
use loadgen::http2::frame;
use loadgen::http2::hpack;
use loadgen::http2::reader::{Handler, Reader};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::parser::split;

/// What a frame said.
#[derive(Debug, PartialEq)]
pub enum Said {
    Fields(u32, Fields, bool),
    Data(u32, u32),
    Body(u32, Vec<u8>),
    End(u32),
    Reset(u32, u32),
    Settings(Vec<(u16, u32)>),
    Ping(Vec<u8>),
    GoAway(u32, u32),
    Window(u32, u32),
}

#[derive(Default)]
struct Listener(Vec<Said>);

impl Listener {
    fn hear(&mut self, said: Said) -> Result<(), Fault> {
        self.0.push(said);
        Ok(())
    }
}

impl Handler for Listener {
    fn on_fields(&mut self, stream: u32, fields: Fields, ends: bool) -> Result<(), Fault> {
        self.hear(Said::Fields(stream, fields, ends))
    }

    fn on_data(&mut self, stream: u32, bytes: u32) -> Result<(), Fault> {
        self.hear(Said::Data(stream, bytes))
    }

    fn on_body(&mut self, stream: u32, body: &[u8]) -> Result<(), Fault> {
        if let Some(Said::Body(_, before)) = self.0.last_mut() {
            before.extend_from_slice(body);
            return Ok(());
        }
        self.hear(Said::Body(stream, body.to_vec()))
    }

    fn on_end(&mut self, stream: u32) {
        self.0.push(Said::End(stream));
    }

    fn on_reset(&mut self, stream: u32, code: u32) -> Result<(), Fault> {
        self.hear(Said::Reset(stream, code))
    }

    fn on_settings(&mut self, settings: impl Iterator<Item = (u16, u32)>) -> Result<(), Fault> {
        self.hear(Said::Settings(settings.collect()))
    }

    fn on_ping(&mut self, opaque: &[u8]) -> Result<(), Fault> {
        self.hear(Said::Ping(opaque.to_vec()))
    }

    fn on_go_away(&mut self, last: u32, code: u32) {
        self.0.push(Said::GoAway(last, code));
    }

    fn on_window(&mut self, stream: u32, by: u32) -> Result<(), Fault> {
        self.hear(Said::Window(stream, by))
    }
}

/// What is heard of frames that come in pieces, what is wrong with them, and how many bytes wait for
/// more.
pub fn hear(pieces: &[&[u8]]) -> (Vec<Said>, Result<usize, Fault>) {
    let (mut reader, mut listener) = (Reader::default(), Listener::default());
    let mut waiting = Vec::new();
    for piece in pieces {
        waiting.extend_from_slice(piece);
        match reader.read(&waiting, &mut listener) {
            Ok(done) => drop(waiting.drain(..done)),
            Err(fault) => return (listener.0, Err(fault)),
        }
    }
    (listener.0, Ok(waiting.len()))
}

/// A frame or several, as a server may send them.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let stream = || (0..50u32).prop_map(|nth| 2 * nth + 1);
    let field = ("[a-z-]{1,20}", "[ -~]{0,60}");
    let block = vec(field, 0..10).prop_map(|list| {
        let mut block = vec![0x88];
        list.iter().for_each(|(name, value)| hpack::encode(name, value, &mut block));
        block
    });
    let written = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut out);
        out
    };
    prop_oneof![
        (stream(), block, any::<bool>(), 1..100usize).prop_map(
            move |(stream, block, ends, most)| {
                written(&|out| frame::write_block(out, stream, &block, ends, most))
            }
        ),
        (stream(), vec(any::<u8>(), 0..300), 0..=1u8).prop_map(move |(stream, body, ends)| {
            written(&|out| frame::write(out, frame::DATA, ends, stream, &body))
        }),
        (stream(), vec(any::<u8>(), 0..300), 0..100u8).prop_map(move |(stream, body, padding)| {
            let payload = [&[padding], &body[..], &vec![0; usize::from(padding)]].concat();
            written(&|out| frame::write(out, frame::DATA, frame::PADDED, stream, &payload))
        }),
        (stream(), any::<u32>()).prop_map(move |(stream, code)| {
            written(&|out| frame::write_number(out, frame::RST_STREAM, stream, code))
        }),
        (10..=255u8, any::<u8>(), any::<u32>(), vec(any::<u8>(), 0..50)).prop_map(
            move |(kind, flags, stream, payload)| {
                written(&|out| frame::write(out, kind, flags, stream, &payload))
            }
        ),
        any::<[u8; 8]>().prop_map(move |opaque| {
            written(&|out| frame::write(out, frame::PING, 0, 0, &opaque))
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_split_is_heard_alike(frames in vec(frames(), 0..20), cuts in vec(any::<usize>(), 0..12)) {
        let mut bytes = Vec::new();
        frame::write_settings(&mut bytes, &[(frame::MAX_CONCURRENT_STREAMS, 100)]);
        frames.iter().for_each(|frame| bytes.extend_from_slice(frame));
        let whole = hear(&[&bytes]);
        prop_assert_eq!(&whole.1, &Ok(0));
        prop_assert_eq!(&hear(&split(&bytes, &cuts)), &whole);
        let bytewise: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&hear(&bytewise), &whole);
        // What is cut off is said later, or never.
        let begun = hear(&[&bytes[..bytes.len() - 1]]);
        prop_assert!(begun.1.is_ok());
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in vec(any::<u8>(), 0..500)) {
        let mut begun = Vec::new();
        frame::write_settings(&mut begun, &[]);
        begun.extend_from_slice(&bytes);
        for bytes in [&bytes, &begun] {
            let (_, waiting) = hear(&[bytes]);
            prop_assert!(waiting.is_err() || waiting.is_ok_and(|waiting| waiting <= bytes.len()));
        }
    }
}

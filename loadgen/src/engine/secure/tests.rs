//! TLS against rustls's own server, in one thread: bytes come when a test says so.

mod pair;

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;

use pair::{ALPN, Pair, Sides};
use rustls::crypto::CryptoProvider;
use rustls::crypto::cipher::{OutboundChunks, OutboundPlainMessage};
use rustls::crypto::ring::{self, cipher_suite};
use rustls::version::{TLS12, TLS13};
use rustls::{
    AlertDescription, CertificateError, ConnectionTrafficSecrets, ContentType, Error,
    ServerConnection, SupportedCipherSuite, SupportedProtocolVersion,
};

use super::*;

const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

fn cause(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

#[test]
fn a_handshake_may_come_byte_by_byte() {
    for version in VERSIONS {
        let mut pair = Pair::new(&Sides::new(version));
        let mut is_done = pair.client.handshake(&pair.fd).expect("a beginning");
        while !is_done {
            pair.serve().expect("a sound client");
            let bytes = pair.outgoing();
            assert!(!bytes.is_empty(), "both sides wait");
            for byte in bytes {
                assert!(!is_done, "before the last byte");
                pair.deliver(&[byte]);
                is_done = pair.client.handshake(&pair.fd).expect("a sound server");
            }
        }
        assert_eq!(pair.client.agreed(), (Some(ALPN), false));
        pair.serve().expect("a sound client");
        // Tickets are no data.
        for byte in pair.outgoing() {
            pair.deliver(&[byte]);
            assert_eq!(pair.read(&mut [0; 9]).expect("no data"), Got::Nothing);
        }
        pair.assert_works();
    }
}

#[test]
fn sessions_are_resumed() {
    for version in VERSIONS {
        let sides = Sides::new(version);
        for is_resumed in [false, true, true] {
            let mut pair = Pair::open(&sides);
            assert_eq!(pair.client.agreed(), (Some(ALPN), is_resumed));
            pair.assert_works();
        }
    }
}

#[test]
fn a_record_is_read_when_it_is_whole() {
    for version in VERSIONS {
        let mut pair = Pair::open(&Sides::new(version));
        let bytes = pair.answer(&[7; 100]);
        let mut buffer = [0; 200];
        let (last, others) = bytes.split_last().expect("a record");
        for byte in others {
            pair.deliver(&[*byte]);
            assert_eq!(pair.read(&mut buffer).expect("a part"), Got::Nothing);
        }
        pair.deliver(&[*last]);
        let got = pair.read(&mut buffer).expect("a record");
        assert_eq!(got, Got::Bytes { count: 100, drained: true });
        assert_eq!(buffer[..100], [7; 100]);
    }
}

#[test]
fn much_data_arrives_whole_whatever_the_buffers_are() {
    let data = Vec::from_iter((0..1_000_000_u32).map(|number| (number % 251) as u8));
    for version in VERSIONS {
        for (buffer_bytes, piece_bytes) in [(64 * 1024, 100_000), (1000, 100_000), (65_537, 777)] {
            let mut pair = Pair::open(&Sides::new(version));
            let (mut read, mut buffer) = (Vec::new(), vec![0; buffer_bytes]);
            for piece in pair.answer(&data).chunks(piece_bytes) {
                pair.deliver(piece);
                while let Got::Bytes { count, drained } = pair.read(&mut buffer).expect("data") {
                    read.extend_from_slice(&buffer[..count]);
                    if drained {
                        break;
                    }
                }
            }
            assert!(read == data, "{version:?} {buffer_bytes} {piece_bytes}: {}", read.len());
        }
        // The socket's buffer is smaller.
        let (mut pair, mut written) = (Pair::open(&Sides::new(version)), 0);
        while written < data.len() || !pair.client.is_flushed() {
            written += pair.write(&data[written..]);
            pair.serve().expect("a sound client");
        }
        assert!(pair.received == data, "{version:?}: {}", pair.received.len());
    }
}

#[test]
fn an_end_that_is_announced_is_no_cut() {
    for version in VERSIONS {
        let mut pair = Pair::open(&Sides::new(version));
        pair.server.writer().write_all(b"last").expect("no limit");
        pair.server.send_close_notify();
        let bytes = pair.outgoing();
        pair.deliver(&bytes);
        let mut buffer = [0; 9];
        let got = pair.read(&mut buffer).expect("data");
        assert_eq!((got, &buffer[..4]), (Got::Bytes { count: 4, drained: false }, &b"last"[..]));
        assert_eq!(pair.read(&mut buffer).expect("the end"), Got::End { cut: false });
        pair.socket.shutdown(Shutdown::Write).expect("a socket");
        assert_eq!(pair.read(&mut buffer).expect("the end"), Got::End { cut: false });
    }
}

#[test]
fn an_end_that_is_not_announced_is_a_cut() {
    for version in VERSIONS {
        for part in [0, 1, 50] {
            let mut pair = Pair::open(&Sides::new(version));
            let bytes = pair.answer(&[7; 100]);
            pair.deliver(&bytes[..part]);
            pair.socket.shutdown(Shutdown::Write).expect("a socket");
            let mut buffer = [0; 200];
            if part > 0 {
                assert_eq!(pair.read(&mut buffer).expect("a part"), Got::Nothing);
            }
            assert_eq!(pair.read(&mut buffer).expect("the end"), Got::End { cut: true });
        }
        let mut pair = Pair::new(&Sides::new(version));
        assert!(!pair.client.handshake(&pair.fd).expect("a beginning"));
        pair.socket.shutdown(Shutdown::Write).expect("a socket");
        let error = pair.client.handshake(&pair.fd).expect_err("the end");
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    }
}

#[test]
fn the_end_is_announced_once_there_is_a_connection() {
    for version in VERSIONS {
        let mut pair = Pair::open(&Sides::new(version));
        pair.client.close(&pair.fd);
        pair.serve().expect("a sound client");
        assert_eq!(pair.server.reader().read(&mut [0; 1]).ok(), Some(0), "no end was announced");

        let mut pair = Pair::new(&Sides::new(version));
        assert!(!pair.client.handshake(&pair.fd).expect("a beginning"));
        let hello = pair.socket.read(&mut [0; 10_000]).expect("a hello");
        assert!(hello > 0);
        pair.client.close(&pair.fd);
        let nothing = pair.socket.read(&mut [0; 1]).expect_err("nothing more");
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
    }
}

#[test]
fn alerts_and_damage_are_errors() {
    for version in VERSIONS {
        let mut pair = Pair::open(&Sides::new(version));
        pair.write(b"ping");
        let mut record = [0; 100];
        let count = pair.socket.read(&mut record).expect("a record");
        record[count - 1] ^= 1;
        pair.server.read_tls(&mut &record[..count]).expect("memory");
        assert_eq!(pair.server.process_new_packets().err(), Some(Error::DecryptError));
        let alert = pair.outgoing();
        pair.deliver(&alert);
        let error = pair.read(&mut [0; 9]).expect_err("an alert");
        let received = Error::AlertReceived(AlertDescription::BadRecordMac);
        assert_eq!((error.kind(), cause(&error)), (ErrorKind::InvalidData, Some(&received)));

        let mut pair = Pair::open(&Sides::new(version));
        let mut bytes = pair.answer(b"pong");
        *bytes.last_mut().expect("a record") ^= 1;
        pair.deliver(&bytes);
        let error = pair.read(&mut [0; 9]).expect_err("damage");
        assert_eq!(cause(&error), Some(&Error::DecryptError));

        let mut pair = Pair::new(&Sides::new(version));
        assert!(!pair.client.handshake(&pair.fd).expect("a beginning"));
        pair.deliver(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        let error = pair.client.handshake(&pair.fd).expect_err("no TLS");
        assert!(matches!(cause(&error), Some(Error::InvalidMessage(_))), "{error}");
    }
}

#[test]
fn a_message_that_is_too_long_is_an_error() {
    // A ServerHello, or after it certificates, of 16 MB: the beginning is enough.
    for begun in [0, 1, 16_000] {
        let mut pair = Pair::new(&Sides::new(&TLS13));
        assert!(!pair.client.handshake(&pair.fd).expect("a beginning"));
        let mut bytes = b"\x16\x03\x03".to_vec();
        let count = u16::try_from(4 + begun).expect("a record");
        bytes.extend_from_slice(&count.to_be_bytes());
        bytes.extend_from_slice(b"\x02\xff\xff\xff");
        bytes.resize(5 + usize::from(count), 0);
        pair.deliver(&bytes);
        let error = pair.client.handshake(&pair.fd).expect_err("too long");
        assert!(matches!(cause(&error), Some(Error::InvalidMessage(_))), "{error}");
        pair.client.close(&pair.fd);
    }
}

#[test]
fn a_certificate_that_is_not_trusted_is_named_to_both() {
    for version in VERSIONS {
        let mut pair = Pair::new(&Sides::with(version, ring::default_provider(), false));
        assert!(!pair.client.handshake(&pair.fd).expect("a beginning"));
        pair.serve().expect("a sound client");
        let bytes = pair.outgoing();
        pair.deliver(&bytes);
        let error = pair.client.handshake(&pair.fd).expect_err("another's certificate");
        // Its issuer has the name of a trusted one, but not the key.
        let signature = Error::InvalidCertificate(CertificateError::BadSignature);
        assert_eq!(cause(&error), Some(&signature));
        let heard = pair.serve().expect_err("an alert");
        assert_eq!(heard, Error::AlertReceived(AlertDescription::DecryptError));
    }
}

#[test]
fn keys_are_changed_where_the_server_wants_it() {
    let mut pair = Pair::open(&Sides::new(&TLS13));
    for _ in 0..3 {
        pair.server.refresh_traffic_keys().expect("TLS 1.3");
        pair.assert_works();
    }
}

/// A server that waits for the client's answer, whatever that is, must get it at once.
#[test]
fn shaking_hands_again_is_refused_at_once() {
    let suite = cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256;
    let provider = CryptoProvider { cipher_suites: vec![suite], ..ring::default_provider() };
    let Pair { mut client, fd, server, mut socket, .. } =
        Pair::open(&Sides::with(&TLS12, provider, true));
    socket.write_all(&hello_request(server, suite)).expect("room");
    let got = client.read(&fd, &mut [0; 9], false).expect("no error");
    assert_eq!(got, Got::Nothing);
    let mut record = [0; 100];
    let count = socket.read(&mut record).expect("a record");
    assert!(count > 5 && ContentType::from(record[0]) == ContentType::Alert, "{record:?}");
}

/// RFC 5246 section 7.4.1.1.
fn hello_request(server: ServerConnection, suite: SupportedCipherSuite) -> Vec<u8> {
    let (number, secrets) = server.dangerous_extract_secrets().expect("secrets").tx;
    let ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } = secrets else { panic!("suite") };
    let SupportedCipherSuite::Tls12(suite) = suite else { panic!("another version") };
    let message = OutboundPlainMessage {
        typ: ContentType::Handshake,
        version: ProtocolVersion::TLSv1_2,
        payload: OutboundChunks::Single(&[0; 4]),
    };
    let mut encrypter = suite.aead_alg.encrypter(key, iv.as_ref(), &[]);
    encrypter.encrypt(message, number).expect("a record").encode()
}

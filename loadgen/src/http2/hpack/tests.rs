use httlib_hpack::Encoder;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

type List = Vec<(Vec<u8>, Vec<u8>)>;

fn decode_with(decoder: &mut Decoder, block: &[u8]) -> Result<List, Fault> {
    let mut list = Vec::new();
    decoder.decode(block, |name, value| list.push((name.to_vec(), value.to_vec())))?;
    Ok(list)
}

/// What blocks say, one after the other, and what the table then takes.
fn decoded(blocks: &[&str]) -> (String, usize) {
    let mut decoder = Decoder::default();
    let mut lines = String::new();
    for block in blocks {
        let block = hex::decode(block).expect("hex");
        for (name, value) in decode_with(&mut decoder, &block).expect("a list") {
            lines += &format!("{}={}\n", name.escape_ascii(), value.escape_ascii());
        }
    }
    (lines, decoder.table.bytes)
}

/// Appendix C.2.
#[test]
fn fields_of_the_standard() {
    for (block, said, table_bytes) in [
        ("400a637573746f6d2d6b65790d637573746f6d2d686561646572", "custom-key=custom-header\n", 55),
        ("040c2f73616d706c652f70617468", ":path=/sample/path\n", 0),
        ("100870617373776f726406736563726574", "password=secret\n", 0),
        ("82", ":method=GET\n", 0),
    ] {
        assert_eq!(decoded(&[block]), (said.into(), table_bytes));
    }
}

/// Appendices C.3 and C.4.
#[test]
fn requests_of_the_standard() {
    let said = ":method=GET\n:scheme=http\n:path=/\n:authority=www.example.com\n\
                :method=GET\n:scheme=http\n:path=/\n:authority=www.example.com\n\
                cache-control=no-cache\n\
                :method=GET\n:scheme=https\n:path=/index.html\n:authority=www.example.com\n\
                custom-key=custom-value\n";
    for blocks in [
        [
            "828684410f7777772e6578616d706c652e636f6d",
            "828684be58086e6f2d6361636865",
            "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
        ],
        [
            "828684418cf1e3c2e5f23a6ba0ab90f4ff",
            "828684be5886a8eb10649cbf",
            "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
        ],
    ] {
        assert_eq!(decoded(&blocks), (said.into(), 164));
    }
}

/// Appendices C.5 and C.6: of a table of 256 bytes, from which entries go.
#[test]
fn answers_of_the_standard() {
    let usual = "cache-control=private\ndate=Mon, 21 Oct 2013 20:13:21 GMT\n\
                 location=https://www.example.com\n";
    let last = ":status=200\ncache-control=private\ndate=Mon, 21 Oct 2013 20:13:22 GMT\n\
                location=https://www.example.com\ncontent-encoding=gzip\n\
                set-cookie=foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1\n";
    let said = format!(":status=302\n{usual}:status=307\n{usual}{last}");
    for blocks in [
        [
            "3fe1014803333032580770726976617465611d4d6f6e2c203231204f63742032303133\
             2032303a31333a323120474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d",
            "4803333037c1c0bf",
            "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c0\
             5a04677a69707738666f6f3d4153444a4b48514b425a584f5157454f504955415851\
             57454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
        ],
        [
            "3fe101488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082\
             a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
            "4883640effc1c0bf",
            "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad\
             94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f95873160\
             65c003ed4ee5b1063d5007",
        ],
    ] {
        assert_eq!(decoded(&blocks), (said.clone(), 215));
    }
}

/// Appendix C.1.
#[test]
fn numbers_of_the_standard() {
    for (bits, number, bytes) in
        [(5, 10, &[10][..]), (5, 1337, &[31, 0x9a, 0x0a]), (8, 42, &[42]), (7, 127, &[127, 0])]
    {
        let mut encoded = Vec::new();
        encode_number((0, bits), number, &mut encoded);
        assert_eq!(encoded, bytes);
        assert_eq!(Input::new(bytes).number(bits), Ok(number));
    }
}

#[test]
fn what_breaks_the_rules_is_refused() {
    for (block, why) in [
        ("80", "no field has the number 0"),
        ("be", "there is no such entry"),
        ("7f", "no number ends here"),
        ("ffffffffff0f", "a number that is too large"),
        ("4003", "a name that is cut off"),
        ("0a0361", "a value that is cut off"),
        ("0a81", "the same in Huffman's code"),
        ("0a81ff", "padding of a whole byte"),
        ("823fe101", "a table's new size after a field"),
        ("3fe21f", "a table larger than we allowed"),
    ] {
        let block = hex::decode(block).expect("hex");
        let outcome = decode_with(&mut Decoder::default(), &block);
        assert_eq!(
            outcome.map_err(|fault| fault.code),
            Err(super::super::code::COMPRESSION_ERROR),
            "{why}"
        );
    }
}

#[test]
fn a_list_has_a_largest_size() {
    // An entry of 4 KB, and its number again and again.
    let mut block = vec![0x40, 1, b'a'];
    encode_string(&"b".repeat(4000), &mut block);
    block.extend_from_slice(&[0xbe; 1000]);
    let mut taken = 0;
    let outcome = Decoder::default().decode(&block, |_, _| taken += 1);
    assert!(outcome.is_err() && taken < 70, "{taken}");
}

#[test]
fn a_table_takes_no_more_memory_than_it_may() {
    let mut decoder = Decoder::default();
    for nth in 0..10_000 {
        let mut block = vec![0x40];
        encode_string(&format!("name-{nth}"), &mut block);
        encode_string(&"x".repeat(nth % 100), &mut block);
        decode_with(&mut decoder, &block).expect("a list");
        let newest = decode_with(&mut decoder, &[0xbe]).expect("its newest entry");
        assert_eq!(newest[0].0, format!("name-{nth}").as_bytes());
    }
    let table = &decoder.table;
    assert!(table.bytes <= TABLE_BYTES && table.text.len() <= 3 * TABLE_BYTES);
    let entries = table.entries.iter().map(|entry| entry.name + entry.value + ENTRY_BYTES);
    assert_eq!(entries.sum::<usize>(), table.bytes);
    // One that is larger than the table empties it.
    let mut block = vec![0x40, 1, b'a'];
    encode_string(&"b".repeat(5000), &mut block);
    decode_with(&mut decoder, &block).expect("a list");
    assert_eq!((decoder.table.bytes, decoder.table.entries.len()), (0, 0));
}

/// A field, and how another implementation encodes it.
fn field() -> impl Strategy<Value = (Vec<u8>, Vec<u8>, u8)> {
    let flags = (0..8u8, prop::bool::ANY)
        .prop_map(|(flags, best)| flags | if best { Encoder::BEST_FORMAT } else { 0 });
    let name = prop_oneof!["[a-z-]{1,12}", "[ab]", Just("content-length".into())];
    let value = prop_oneof![vec(any::<u8>(), 0..200), "[ -~]{0,40}".prop_map(String::into_bytes)];
    (name.prop_map(|name: String| name.into_bytes()), value, flags)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_another_implementation_encodes_is_decoded(
        lists in vec((vec(field(), 0..20), prop::option::of(0..=4096u32)), 1..20),
    ) {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        for (list, size) in lists {
            let mut block = Vec::new();
            if let Some(size) = size {
                encoder.update_max_dynamic_size(size, &mut block).expect("a size");
            }
            for field in &list {
                encoder.encode(field.clone(), &mut block).expect("a field");
            }
            let said: List = list.into_iter().map(|(name, value, _)| (name, value)).collect();
            prop_assert_eq!(decode_with(&mut decoder, &block), Ok(said));
        }
    }

    #[test]
    fn another_implementation_decodes_what_is_encoded(
        list in vec(("[a-z:-]{1,12}|:path|:method", "GET|/|[ -~]{0,300}"), 0..20),
    ) {
        let mut block = Vec::new();
        list.iter().for_each(|(name, value)| encode(name, value, &mut block));
        let said: List =
            list.iter().map(|(name, value)| (name.clone().into(), value.clone().into())).collect();
        prop_assert_eq!(decode_with(&mut Decoder::default(), &block), Ok(said.clone()));
        let mut theirs = Vec::new();
        httlib_hpack::Decoder::default().decode(&mut block, &mut theirs).expect("a list");
        let theirs: List = theirs.into_iter().map(|(name, value, _)| (name, value)).collect();
        prop_assert_eq!(theirs, said);
    }
}

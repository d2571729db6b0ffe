//! The four codecs, with a bound on what may come out: a sender's word is never believed.

use super::Compression;
use std::io::{self, Read, Write};

/// xerial's framing of snappy, which Java clients write: magic, then two version numbers.
const XERIAL_MAGIC: &[u8] = b"\x82SNAPPY\0";
const XERIAL_HEADER_BYTES: usize = 16;
/// What snappy-java puts into one block.
const XERIAL_BLOCK_BYTES: usize = 32 * 1024;
/// zstd windows above 128 MiB are refused (the decoder's own default).
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// Why records could not be compressed or decompressed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompressError {
    /// The result would be larger than allowed.
    #[error("more than {0} bytes come out")]
    TooLarge(usize),
    /// The bytes are not what the codec writes.
    #[error("damaged {codec:?} data: {source}")]
    Damaged {
        /// Which codec.
        codec: Compression,
        /// What it said.
        source: io::Error,
    },
}

/// Decompresses `bytes` into at most `bytes_max` bytes.
pub(crate) fn decompress(
    codec: Compression,
    bytes: &[u8],
    bytes_max: usize,
) -> Result<Vec<u8>, CompressError> {
    let damaged = |source| CompressError::Damaged { codec, source };
    match codec {
        Compression::None => Ok(bytes.to_vec()),
        Compression::Gzip => bounded(flate2::read::MultiGzDecoder::new(bytes), codec, bytes_max),
        Compression::Lz4 => bounded(lz4_flex::frame::FrameDecoder::new(bytes), codec, bytes_max),
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes).map_err(damaged)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(damaged)?;
            bounded(decoder, codec, bytes_max)
        }
        Compression::Snappy => match bytes.strip_prefix(XERIAL_MAGIC) {
            Some(_) => {
                let blocks = bytes.get(XERIAL_HEADER_BYTES..).unwrap_or_default();
                xerial_blocks(blocks, bytes_max)
            }
            None => {
                let mut out = Vec::new();
                snappy_block(bytes, &mut out, bytes_max)?;
                Ok(out)
            }
        },
    }
}

fn bounded(
    reader: impl Read,
    codec: Compression,
    bytes_max: usize,
) -> Result<Vec<u8>, CompressError> {
    let mut out = Vec::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    reader
        .take(limit)
        .read_to_end(&mut out)
        .map_err(|source| CompressError::Damaged { codec, source })?;
    if out.len() > bytes_max { Err(CompressError::TooLarge(bytes_max)) } else { Ok(out) }
}

fn xerial_blocks(mut rest: &[u8], bytes_max: usize) -> Result<Vec<u8>, CompressError> {
    let mut out = Vec::new();
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(cut_short)?;
        let length = usize::try_from(i32::from_be_bytes(*length)).map_err(|_| cut_short())?;
        let (block, after) = after.split_at_checked(length).ok_or_else(cut_short)?;
        snappy_block(block, &mut out, bytes_max)?;
        rest = after;
    }
    Ok(out)
}

fn cut_short() -> CompressError {
    CompressError::Damaged {
        codec: Compression::Snappy,
        source: io::ErrorKind::UnexpectedEof.into(),
    }
}

fn snappy_block(block: &[u8], out: &mut Vec<u8>, bytes_max: usize) -> Result<(), CompressError> {
    let damaged = |error: snap::Error| CompressError::Damaged {
        codec: Compression::Snappy,
        source: io::Error::other(error),
    };
    let size = snap::raw::decompress_len(block).map_err(damaged)?;
    // Snappy's densest copy makes 64 bytes of 3; a larger claim is a lie, so nothing is reserved.
    if size > bytes_max.saturating_sub(out.len()) {
        return Err(CompressError::TooLarge(bytes_max));
    }
    if size / 32 > block.len() {
        return Err(damaged(snap::Error::TooBig { given: size as u64, max: block.len() as u64 }));
    }
    let start = out.len();
    out.resize(start + size, 0);
    let place = out.get_mut(start..).unwrap_or_default();
    snap::raw::Decoder::new().decompress(block, place).map_err(damaged)?;
    Ok(())
}

/// Compresses `bytes`. `level` is the codec's own; gzip and zstd take it, the others have one.
pub(crate) fn compress(
    codec: Compression,
    level: Option<i32>,
    bytes: &[u8],
) -> Result<Vec<u8>, CompressError> {
    let result = match codec {
        Compression::None => Ok(bytes.to_vec()),
        Compression::Gzip => {
            let level = level.and_then(|level| u32::try_from(level).ok()).unwrap_or(6).min(9);
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
            encoder.write_all(bytes).and_then(|()| encoder.finish())
        }
        Compression::Lz4 => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(bytes).and_then(|()| encoder.finish().map_err(io::Error::other))
        }
        Compression::Zstd => zstd::bulk::compress(bytes, level.unwrap_or(3)),
        Compression::Snappy => snappy_frames(bytes),
    };
    result.map_err(|source| CompressError::Damaged { codec, source })
}

fn snappy_frames(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len() / 2 + XERIAL_HEADER_BYTES);
    out.extend_from_slice(XERIAL_MAGIC);
    out.extend_from_slice(&1i32.to_be_bytes());
    out.extend_from_slice(&1i32.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for block in bytes.chunks(XERIAL_BLOCK_BYTES) {
        let packed = encoder.compress_vec(block).map_err(io::Error::other)?;
        let length = i32::try_from(packed.len()).map_err(io::Error::other)?;
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&packed);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODECS: [Compression; 5] = [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ];

    #[test]
    fn what_is_compressed_comes_back() {
        let text = b"the quick brown fox ".repeat(5_000);
        for codec in CODECS {
            let packed = compress(codec, None, &text).expect("compress");
            assert!(codec == Compression::None || packed.len() < text.len() / 5, "{codec:?}");
            let unpacked = decompress(codec, &packed, text.len()).expect("decompress");
            assert_eq!(unpacked, text, "{codec:?}");
        }
    }

    #[test]
    fn a_bomb_is_refused_at_the_limit() {
        let zeros = vec![0; 10 << 20];
        for codec in &CODECS[1..] {
            let packed = compress(*codec, None, &zeros).expect("compress");
            let refused = decompress(*codec, &packed, 1 << 20);
            assert!(matches!(refused, Err(CompressError::TooLarge(_))), "{codec:?} {refused:?}");
        }
        let claims_4_gib = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0];
        assert!(decompress(Compression::Snappy, &claims_4_gib, usize::MAX).is_err());
    }

    #[test]
    fn raw_snappy_as_librdkafka_writes_it_is_read() {
        let packed = snap::raw::Encoder::new().compress_vec(b"hello hello hello").expect("snappy");
        let text = decompress(Compression::Snappy, &packed, 100).expect("decompress");
        assert_eq!(text, b"hello hello hello");
    }
}

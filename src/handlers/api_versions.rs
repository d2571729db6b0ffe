//! ApiVersions, v0–4. Which APIs and versions this broker offers (KIP-35).
//! v3: flexible, and names the client's software (KIP-511). v4: features whose least level is 0.
//! The response's header is never flexible. An unknown version is answered in version 0 with
//! UNSUPPORTED_VERSION and this API's own range, on an open connection.

use super::table::{APIS, Api};
use super::{Request, Response, respond};
use crate::protocol::ErrorCode;
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::{ApiKey, ApiVersionsRequest, ApiVersionsResponse};

pub(super) fn handle(request: &Request, body: &ApiVersionsRequest) -> ApiVersionsResponse {
    let named = request.version < 3
        || (is_software_name(&body.client_software_name)
            && is_software_name(&body.client_software_version));
    if !named {
        return ApiVersionsResponse::default().with_error_code(ErrorCode::InvalidRequest.code());
    }
    ApiVersionsResponse::default().with_api_keys(APIS.iter().map(row).collect())
}

/// The answer to a version that is not known.
pub(super) fn unsupported(correlation_id: i32) -> Result<Response, String> {
    let own = APIS.iter().filter(|api| api.key == ApiKey::ApiVersions).map(row).collect();
    let answer = ApiVersionsResponse::default()
        .with_error_code(ErrorCode::UnsupportedVersion.code())
        .with_api_keys(own);
    let key = ApiKey::ApiVersions as i16;
    let request = Request { key, version: 0, correlation_id, client_id: None };
    respond::Answer::from(answer).encode(&request)
}

fn row(api: &Api) -> ApiVersion {
    ApiVersion::default()
        .with_api_key(api.key as i16)
        .with_min_version(api.advertised_from)
        .with_max_version(*api.versions.end())
}

/// Letters and digits, with dots and dashes between them.
fn is_software_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
    let bytes = name.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| inner(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_names_are_those_kafka_takes() {
        for good in ["a", "apache-kafka-java", "2.12.0", "a.-b"] {
            assert!(is_software_name(good), "{good}");
        }
        for bad in ["", "-a", "a.", "a b", "ä", "a_b"] {
            assert!(!is_software_name(bad), "{bad}");
        }
    }
}

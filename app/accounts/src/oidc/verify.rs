//! Verification of ID tokens.

use chrono::{DateTime, TimeDelta, Utc};
use harness::config::OidcProviderConfig;
use openidconnect::core::{
    CoreIdToken, CoreIdTokenClaims, CoreIdTokenVerifier, CoreJsonWebKeySet, CoreJwsSigningAlgorithm,
};
use openidconnect::{AccessToken, AccessTokenHash, ClaimsVerificationError, ClientId, Nonce};

use super::endpoints::Endpoints;

/// Permitted difference between the clocks of provider and server.
const LEEWAY: TimeDelta = TimeDelta::seconds(60);

/// Accepted signatures. Symmetric ones are not: the client secret is no proof of the provider.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 5] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
];

/// Used claims of a verified ID token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IdClaims {
    pub(super) subject: String,
    pub(super) email: Option<String>,
    /// `true` if the claim is the JSON value `true`.
    pub(super) email_verified: bool,
}

/// Verifies an ID token: signature, issuer, audience, times, nonce, and the hash of the access
/// token if it has one.
pub(super) fn verify(
    token: &CoreIdToken,
    access_token: &AccessToken,
    config: &OidcProviderConfig,
    endpoints: &Endpoints,
    keys: &CoreJsonWebKeySet,
    nonce: Option<&str>,
    now: DateTime<Utc>,
) -> Result<IdClaims, ClaimsVerificationError> {
    let client_id = ClientId::new(config.client_id.clone());
    let issuer = endpoints.issuer.clone();
    let verifier = CoreIdTokenVerifier::new_public_client(client_id, issuer, keys.clone())
        .set_allowed_algs(ALGORITHMS)
        // Other audiences are checked by `check_audiences`.
        .set_other_audience_verifier_fn(|_| true)
        .set_time_fn(move || now - LEEWAY)
        .set_issue_time_verifier_fn(move |issued| {
            if issued > now + LEEWAY {
                return Err("the token is from the future".to_owned());
            }
            Ok(())
        });
    let nonce = nonce.map(|nonce| Nonce::new(nonce.to_owned()));
    let claims = token.claims(&verifier, |stated: Option<&Nonce>| match &nonce {
        Some(nonce) => openidconnect::NonceVerifier::verify(nonce, stated),
        None => Ok(()),
    })?;
    // The library may compare addresses in a normalised form.
    if claims.issuer().as_str() != endpoints.issuer.as_str() {
        let text = "it differs from that of the discovery document".to_owned();
        return Err(ClaimsVerificationError::InvalidIssuer(text));
    }
    check_audiences(claims, &config.client_id)?;
    check_access_token(token, claims, access_token, &verifier)?;
    Ok(IdClaims {
        subject: claims.subject().as_str().to_owned(),
        email: claims.email().map(|email| email.as_str().to_owned()),
        email_verified: claims.email_verified() == Some(true),
    })
}

/// A token for several audiences has to be issued for this client.
fn check_audiences(
    claims: &CoreIdTokenClaims,
    client_id: &str,
) -> Result<(), ClaimsVerificationError> {
    let party = claims.authorized_party().map(|party| party.as_str());
    let is_own = match party {
        Some(party) => party == client_id,
        None => claims.audiences().len() == 1,
    };
    if is_own {
        Ok(())
    } else {
        let text = "the token was issued for another client".to_owned();
        Err(ClaimsVerificationError::InvalidAudience(text))
    }
}

/// Checks the hash of the access token in the ID token, if it has one.
fn check_access_token(
    token: &CoreIdToken,
    claims: &CoreIdTokenClaims,
    access_token: &AccessToken,
    verifier: &CoreIdTokenVerifier<'_>,
) -> Result<(), ClaimsVerificationError> {
    let Some(stated) = claims.access_token_hash() else {
        return Ok(());
    };
    let signature = ClaimsVerificationError::SignatureVerification;
    let algorithm = token.signing_alg().map_err(signature)?;
    let key = token.signing_key(verifier).map_err(signature)?;
    let found = AccessTokenHash::from_token(access_token, algorithm, key)
        .map_err(|error| ClaimsVerificationError::Other(error.to_string()))?;
    if found == *stated {
        Ok(())
    } else {
        let text = "the ID token belongs to another access token".to_owned();
        Err(ClaimsVerificationError::Other(text))
    }
}

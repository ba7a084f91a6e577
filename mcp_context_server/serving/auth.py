"""Who may call over the network: bearer tokens from a file, and an OAuth server's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp.server.auth.provider import AccessToken, TokenVerifier

from mcp_context_server.errors import InvalidInput
from mcp_context_server.serving.oauth import IntrospectedTokens, SignedTokens
from mcp_context_server.serving.token_file import TokenFile
from mcp_context_server.settings import Settings


def verifier_of(settings: Settings) -> TokenVerifier | None:
    """Who tells what a token is worth; None where nobody has to bring one.

    Raises `InvalidInput` where the settings don't add up or the file can't be used.
    """
    verifiers: list[TokenVerifier] = []
    if settings.auth_token_file is not None:
        verifiers.append(TokenFile(settings.auth_token_file, settings.auth_scopes))
    if settings.auth_issuer:
        verifiers.append(_issued(settings))
    elif settings.auth_jwks_url or settings.auth_introspection_url or settings.auth_resource:
        message = "OAuth settings need MCP_CONTEXT_AUTH_ISSUER, the authorization server's URL."
        raise InvalidInput(message)
    return AnyOf(tuple(verifiers)) if verifiers else None


def _issued(settings: Settings) -> TokenVerifier:
    if not settings.auth_resource:
        message = (
            "With MCP_CONTEXT_AUTH_ISSUER, set MCP_CONTEXT_AUTH_RESOURCE to the URL under which "
            "clients reach this server's /mcp: tokens made for other servers are refused."
        )
        raise InvalidInput(message)
    if settings.auth_jwks_url:
        return SignedTokens(settings.auth_issuer, settings.auth_resource, settings.auth_jwks_url)
    if settings.auth_introspection_url:
        return IntrospectedTokens(
            settings.auth_issuer,
            settings.auth_resource,
            settings.auth_introspection_url,
            settings.auth_client_id,
            settings.auth_client_secret.get_secret_value() if settings.auth_client_secret else "",
        )
    message = (
        "With MCP_CONTEXT_AUTH_ISSUER, set MCP_CONTEXT_AUTH_JWKS_URL, where the issuer's keys "
        "are, or MCP_CONTEXT_AUTH_INTROSPECTION_URL, where it says what a token is worth."
    )
    raise InvalidInput(message)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Takes what any of several verifiers takes, asked in this order."""

    verifiers: Sequence[TokenVerifier]

    async def verify_token(self, token: str) -> AccessToken | None:
        for verifier in self.verifiers:
            if found := await verifier.verify_token(token):
                return found
        return None

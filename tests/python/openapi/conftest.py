"""What tests of OpenAPI documents share."""

import pytest

from callslip._runtime import tool_attempts


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """No waiting between attempts, unless a server asks for it."""
    monkeypatch.setattr(tool_attempts, "_FIRST", 0.0)


@pytest.fixture(scope="session")
def one_certificate(tmp_path_factory):
    """A file with one of the certificates that HTTP clients trust."""
    import certifi

    end = "-----END CERTIFICATE-----\n"
    path = tmp_path_factory.mktemp("certificates") / "one.pem"
    path.write_text(certifi.contents().partition(end)[0] + end)
    return path


@pytest.fixture(autouse=True)
def few_certificates(one_certificate, monkeypatch):
    """No reading of all certificates for each client: it takes a third of most tests."""
    monkeypatch.setenv("SSL_CERT_FILE", str(one_certificate))

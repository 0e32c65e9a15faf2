import { webcrypto } from 'node:crypto';
import { randomBytes } from 'node:crypto';

/** A year: the certificate lives in memory and is made anew at every start. */
const VALID_MS = 365 * 24 * 3_600_000;
/** Clocks of scrapers may lag. */
const BACKDATE_MS = 3_600_000;

/** A certificate for a server whose clients do not verify it, as controller-runtime's metrics server makes one when given none. PEM. */
export async function selfSignedCertificate(commonName: string): Promise<{ key: string; cert: string }> {
  // Loaded where it is needed: measured, 10 MiB. Its tsyringe reads metadata of its own classes, for which the polyfill must be there first.
  await import('reflect-metadata');
  const x509 = await import('@peculiar/x509');
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: randomBytes(8).toString('hex'),
    name: `CN=${commonName}`,
    notBefore: new Date(Date.now() - BACKDATE_MS),
    notAfter: new Date(Date.now() + VALID_MS),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.SubjectAlternativeNameExtension([
        { type: 'dns', value: 'localhost' },
        { type: 'ip', value: '127.0.0.1' },
      ]),
    ],
  });
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
  const body = pkcs8.match(/.{1,64}/g)?.join('\n') ?? '';
  return {
    key: `-----BEGIN PRIVATE KEY-----\n${body}\n-----END PRIVATE KEY-----\n`,
    cert: certificate.toString('pem'),
  };
}

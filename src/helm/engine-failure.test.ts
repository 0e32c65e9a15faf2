import { describe, expect, it } from 'vitest';
import { helmFailure, lastError } from './engine-failure.ts';

function failure(stderr: string): { code: string; message: string } {
  const { code, message } = helmFailure(stderr, (text) => text, 'helm failed and said nothing');
  return { code, message };
}

describe('helmFailure', () => {
  // What helm 3.22.0 and 4.1.4 said, tried on a real API server.
  it.each([
    ['ReleaseExists', 'Error: INSTALLATION FAILED: cannot re-use a name that is still in use'],
    [
      'ReleaseExists',
      'Error: INSTALLATION FAILED: release name check failed: cannot reuse a name that is still in use',
    ],
    ['ReleasePending', 'Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress'],
    ['NoDeployedRelease', 'Error: UPGRADE FAILED: "nope" has no deployed releases'],
    ['ReleaseNotFound', 'Error: uninstall: Release not loaded: nope: release: not found'],
    ['ReleaseNotFound', 'Error: release has no 7 version'],
    [
      'OwnershipConflict',
      'Error: INSTALLATION FAILED: unable to continue with install: ConfigMap "shared" in namespace "ns" exists and cannot be imported into the current release: invalid ownership metadata; label validation error: missing key "app.kubernetes.io/managed-by": must be set to "Helm"',
    ],
    [
      'FieldConflict',
      'Error: UPGRADE FAILED: conflict occurred while applying object ns/a /v1, Kind=ConfigMap: Apply failed with 1 conflict: conflict with "kubectl-patch" using v1: .data.a',
    ],
    [
      'ImmutableField',
      'Error: UPGRADE FAILED: cannot patch "im" with kind Deployment: Deployment.apps "im" is invalid: spec.selector: Invalid value: {"matchLabels":{"app":"two"}}: field is immutable',
    ],
    [
      'ImmutableField',
      `Error: UPGRADE FAILED: StatefulSet.apps "db" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden`,
    ],
    [
      'ValuesInvalid',
      "Error: INSTALLATION FAILED: values don't meet the specifications of the schema(s) in the following chart(s):\nc:\n- at '/port': maximum: got 400, want 10\n",
    ],
    ['ValuesInvalid', 'Error: INSTALLATION FAILED: failed to parse -: error converting YAML to JSON: yaml: line 1: x'],
    ['ChartInvalid', 'Error: INSTALLATION FAILED: execution error at (fail/templates/x.yaml:1:3): set a password'],
    ['ChartInvalid', 'Error: INSTALLATION FAILED: parse error at (c/templates/x.yaml:2): missing value for if'],
    [
      'ChartInvalid',
      'Error: INSTALLATION FAILED: YAML parse error on c/templates/x.yaml: error converting YAML to JSON: yaml: line 3: did not find',
    ],
    [
      'ChartInvalid',
      "Error: INSTALLATION FAILED: file '/x.tgz' does not appear to be a gzipped archive; got 'application/octet-stream'",
    ],
    [
      'ChartInvalid',
      'Error: INSTALLATION FAILED: an error occurred while checking for chart dependencies. You may need to run `helm dependency build` to fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: sub',
    ],
    [
      'Unauthorized',
      'Error: INSTALLATION FAILED: Kubernetes cluster unreachable: the server has asked for the client to provide credentials',
    ],
    [
      'Unreachable',
      'Error: INSTALLATION FAILED: Kubernetes cluster unreachable: Get "https://10.0.0.1:6443/version": dial tcp 10.0.0.1:6443: connect: connection refused',
    ],
    [
      'Unreachable',
      'Error: kubernetes cluster unreachable: Get "https://10.0.0.1:6443/version": tls: failed to verify certificate: x509: certificate signed by unknown authority',
    ],
    [
      'Forbidden',
      'Error: uninstall: Release not loaded: a: query: failed to query with labels: secrets is forbidden: User "u" cannot list resource "secrets" in API group "" in the namespace "ns"',
    ],
    [
      'HookFailed',
      'Error: INSTALLATION FAILED: failed pre-install: 1 error occurred:\n\t* timed out waiting for the condition\n\n\n',
    ],
    [
      'HookFailed',
      'Error: UPGRADE FAILED: pre-upgrade hooks failed: 1 error occurred:\n\t* job failed: BackoffLimitExceeded\n',
    ],
    ['Timeout', 'Error: INSTALLATION FAILED: context deadline exceeded'],
    [
      'Timeout',
      'Error: INSTALLATION FAILED: resource Deployment/ns/wt not ready. status: InProgress, message: Replicas: 0/1\ncontext deadline exceeded',
    ],
    [
      'ObjectInvalid',
      'Error: INSTALLATION FAILED: failed to create typed patch object (ns/uf; /v1, Kind=Service): errors:\n  .spec.portz: field not declared in schema\n',
    ],
    [
      'ObjectInvalid',
      'Error: INSTALLATION FAILED: unable to build kubernetes objects from release manifest: resource mapping not found for name: "f" namespace: "" from "": no matches for kind "Foo" in version "foo.example.com/v1"\nensure CRDs are installed first',
    ],
    ['Cancelled', 'Error: INSTALLATION FAILED: context canceled'],
    ['Failed', 'Error: INSTALLATION FAILED: namespaces "nosuchns" not found'],
  ])('is %s for %s', (code, stderr) => {
    expect(failure(stderr).code).toBe(code);
  });

  it("reports as Helm's library does: without the command's words and without what was logged", () => {
    const stderr = [
      'I1130 22:58:03.199035    3945 warnings.go:107] "Warning: unknown field \\"spec.portz\\""',
      'Flag --atomic has been deprecated, use --rollback-on-failure instead',
      'level=WARN msg="upgrade failed" name=a error="something"',
      'Error: UPGRADE FAILED: 1 error occurred:',
      '\t* Service "inv" is invalid: spec.ports[0].port: Invalid value: 99999999',
      'W1130 22:58:04.000000    3945 warnings.go:70] late',
      '',
      '',
    ].join('\n');
    const message = '1 error occurred:\n\t* Service "inv" is invalid: spec.ports[0].port: Invalid value: 99999999';
    expect(failure(stderr)).toEqual({ code: 'ObjectInvalid', message });
  });

  it('names the option when a chart lacks its dependencies', () => {
    const error = helmFailure('Error: INSTALLATION FAILED: only unpacked charts can be updated', (text) => text, '');
    expect(error).toMatchObject({ code: 'OptionUnsupported', field: 'options.dependencyUpdate' });
    expect(error.message).toContain('helm package --dependency-update');
  });

  it("says what to do about a release that is too large for Helm's record of it", () => {
    const { code, message } = failure(
      'Error: INSTALLATION FAILED: create: failed to create: Secret "sh.helm.release.v1.a.v1" is invalid: data: Too long: may not be more than 1048576 bytes',
    );
    expect(code).toBe('ObjectInvalid');
    expect(message).toMatch(/too large.*at most 1 MiB.*values or the chart smaller.*1048576/);
  });

  it('bounds a message and keeps its start and its end', () => {
    const { message } = failure(`Error: begin ${'x'.repeat(5_000)} end`);
    expect(message.length).toBeLessThan(1_600);
    expect(message).toMatch(/^begin x+ \.\.\. x+ end$/);
  });

  it('takes values out before it bounds', () => {
    const { message } = helmFailure(
      `Error: ${'x'.repeat(995)}secret!${'x'.repeat(2_000)}`,
      (text) => text.replace('secret!', '***'),
      '',
    );
    expect(message).not.toContain('sec');
  });

  it('says what it can when helm said nothing', () => {
    expect(failure('panic: runtime error')).toEqual({ code: 'Failed', message: 'helm failed and said nothing' });
  });
});

describe('lastError', () => {
  it.each([
    ['', undefined],
    ['no such thing', undefined],
    ['Error: ', undefined],
    ['Error: one', 'one'],
    ['Error: one\nError: two\n', 'two'],
    ['a line with Error: in it\nError: real', 'real'],
  ])('of %j is %j', (stderr, expected) => {
    expect(lastError(stderr)).toBe(expected);
  });
});

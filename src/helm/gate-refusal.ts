import { errorText } from '../telemetry/index.ts';

/**
 * What helm is told in the place of an answer: a Status, as an API server would send. 403 is not tried again by
 * client-go and ends the operation; 502 is the gate's word for a cluster that cannot be reached.
 */
export function refusal(error: unknown, isLost: boolean): { readonly status: number; readonly text: string } {
  const code = isLost ? 403 : 502;
  const text = JSON.stringify({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: errorText(error),
    reason: isLost ? 'Forbidden' : 'ServiceUnavailable',
    code,
  });
  return { status: code, text };
}

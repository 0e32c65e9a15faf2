/** The room helm's parts that this controller makes itself, and the machine's clock. */
import { NativeReleaseReader, valuesDigest } from '../../helm/index.ts';
import type { Telemetry } from '../../telemetry/index.ts';
import type { ReleaseTools } from './parts.ts';

/** Who calls: index.ts; tests bring their own. */
export function defaultTools(telemetry: Telemetry): ReleaseTools {
  return {
    createReader: ({ name, client, watches }) => new NativeReleaseReader({ cluster: name, client, watches, telemetry }),
    valuesDigest,
    now: () => Date.now(),
    random: () => Math.random(),
  };
}

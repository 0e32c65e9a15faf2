import { definePlugin } from 'capstan';
import { maintenanceWindow } from './maintenance-window.ts';
import { Window } from './window.ts';

/**
 * `WINDOW='Sat,Sun 22:00-04:00' capstan manager --plugin ./plugin.ts`, and in a HelmChartProxy
 * `reconcileStrategy: example.com/maintenance-window`.
 */
export default definePlugin(({ container, TOKENS }) => {
  const window = new Window(process.env['WINDOW'] ?? '* 02:00-04:00');
  container
    .bind(TOKENS.strategy)
    .toConstantValue(maintenanceWindow({ name: 'example.com/maintenance-window', window }));
});

import { definePlugin } from 'capstan';
import { InventoryProvider } from './inventory-provider.ts';

/** `INVENTORY_URL=https://inventory.example.com/clusters capstan manager --plugin ./plugin.ts` */
export default definePlugin(({ container, TOKENS, log }) => {
  const { INVENTORY_URL: url, INVENTORY_TOKEN: token, INVENTORY_NAMESPACE: namespace = 'default' } = process.env;
  if (url === undefined || !URL.canParse(url)) throw new Error('INVENTORY_URL must be the URL of the inventory');
  container.bind(TOKENS.provider).toConstantValue(
    new InventoryProvider({
      url,
      log: log.with({ provider: 'inventory' }),
      namespace,
      ...(token === undefined ? {} : { token }),
    }),
  );
});

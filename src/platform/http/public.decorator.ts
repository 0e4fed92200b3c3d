import { SetMetadata } from '@nestjs/common';

export const publicRoute = 'rialto:public';

/** Makes a route public; every other route needs a credential. */
export const Public = (): MethodDecorator & ClassDecorator => SetMetadata(publicRoute, true);

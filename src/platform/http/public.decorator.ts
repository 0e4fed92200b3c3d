import { SetMetadata } from '@nestjs/common';

export const publicRoute = 'rialto:public';

/** Opens a route to anyone; every other route needs a credential. */
export const Public = (): MethodDecorator & ClassDecorator => SetMetadata(publicRoute, true);
